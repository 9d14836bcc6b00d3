"""The line of timm's train.py: rates are written 260.17/s."""

import time

import net

last = time.time()


def each(epoch, loss):
    global last
    dt = max(time.time() - last, 1e-6)
    last = time.time()
    print(
        f"Train: {epoch} [   4/4 (100%)]  Loss: {loss:.3g} ({loss:.3g})  Time: {dt:.3f}s, {96 / dt:>7.2f}/s  ({dt:.3f}s, {96 / dt:>7.2f}/s)  LR: 1.000e-01  Data: {dt / 9:.3f} ({dt / 9:.3f})"
    )


net.train(each_epoch=each)
