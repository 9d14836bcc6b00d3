"""One line for each epoch, with its seconds."""

import time

import net

last = time.time()


def each_epoch(epoch, loss):
    global last
    print("Epoch", epoch, "\tLoss:", round(loss, 4), "\tTime:", round(time.time() - last, 3), "s", flush=True)
    last = time.time()


net.train(epochs=5, each_epoch=each_epoch)
