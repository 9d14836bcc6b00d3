"""Lines as nanoGPT prints them."""

import time

import net

last = time.time()


def each_epoch(epoch, loss):
    global last
    dt, last = time.time() - last, time.time()
    print(f"iter {epoch}: loss {loss:.4f}, time {dt * 1000:.2f}ms, mfu {dt * 3:.2f}%, tok/sec {96 / dt:.1f}")


print("number of parameters: 0.00M")
net.train(epochs=5, each_epoch=each_epoch)
print("saving checkpoint to out")
