"""The line of StyleGAN's training loop."""

import resource
import time

import net

t0 = time.time()


def each(epoch, loss):
    dt = time.time() - t0
    mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"tick {epoch:<5d} kimg {epoch * 0.1:<8.1f} time {dt:<12.2f} sec/tick {dt / epoch:<7.3f} sec/kimg {dt * 10:<7.2f} maintenance {dt / 7:<6.3f} cpumem {mem:<6.2f} gpumem 0.00  reserved 0.00  augment 0.000"
    )


net.train(each_epoch=each)
