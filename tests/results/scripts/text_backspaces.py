"""A spinner by backspaces, as often as there was time, and colors."""

import random
import sys

import net


def each_epoch(epoch, loss):
    sys.stdout.write(f"\x1b[32mepoch {epoch}\x1b[0m  ")
    for turn in range(random.randrange(1, 30)):
        sys.stdout.write("\b" + "|/-\\"[turn % 4])
    sys.stdout.write("\b\x1b[K" + f"loss {loss:.4f}\n")


net.train(each_epoch=each_epoch)
