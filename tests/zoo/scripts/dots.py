"""Dots, as many as there was time for on stderr, and as many as steps on stdout."""

import sys
import time

import net

started = time.time()


def each_epoch(epoch, loss):
    print(".", end="", flush=True)
    sys.stderr.write("." * (1 + time.time_ns() % 5))


net.train(epochs=10, each_epoch=each_epoch)
print(f" done in {time.time() - started:.1f}s")
