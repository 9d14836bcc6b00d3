"""A progress bar that is drawn over itself: times and rates change, and so does how often it is drawn."""

import random
import sys
import time

import net

started = time.time()


def each_epoch(epoch, loss):
    for _ in range(random.randrange(1, 9)):
        rate = epoch / (time.time() - started)
        bar = "#" * (epoch * 10 // 3)
        sys.stdout.write(
            f"\r{epoch * 33}%|{bar:10}| {epoch}/3 [00:00<00:00, {rate:.2f}it/s, loss={loss + random.random():.3f}]"
        )
    sys.stdout.write(f"\r{epoch * 33}%|{bar:10}| {epoch}/3 [00:00<00:00, {rate:.2f}it/s, loss={loss:.3f}]      ")
    sys.stdout.flush()


model = net.train(each_epoch=each_epoch)
print(f"\ntest loss {net.score(model):.4f}")
