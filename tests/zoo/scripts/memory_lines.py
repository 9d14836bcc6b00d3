"""Memory of the GPU and of the process, as trainings print them."""

import resource

import net


def each_epoch(epoch, loss):
    rss = int(open("/proc/self/statm").read().split()[1]) * 4096
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"epoch {epoch} loss {loss:.4f} RAM {rss / 2**20:.1f}MB GPU mem 0.00G memory_allocated={rss} max_mem: {peak} kB"
    )
    print(f"[mem] rss={rss / 2**30:.3f} GiB, peak {peak / 2**10:.0f} MiB")


net.train(epochs=4, each_epoch=each_epoch)
