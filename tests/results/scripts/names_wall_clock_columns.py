"""Columns as trackers name them."""

import time

import net

started = time.time()
with open("progress.tsv", "w") as file:
    file.write("step\tloss\ttimestamp\twall_time\t_runtime\telapsed (s)\tsteps/sec\n")
    net.train(
        each_epoch=lambda epoch, loss: file.write(
            f"{epoch}\t{loss:.5f}\t{time.time()}\t{time.time():.3f}\t{time.time() - started:.4f}"
            f"\t{time.time() - started:.2f}\t{epoch * 4 / (time.time() - started):.2f}\n"
        )
    )
