"""A log as CSV with columns for times."""

import csv
import datetime
import time

import net

started = last = time.time()
with open("log.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, ["epoch", "loss", "time", "epoch_time", "date", "batch_sec", "lr"])
    writer.writeheader()

    def each_epoch(epoch, loss):
        global last
        now = time.time()
        values = {
            "time": now - started,
            "epoch_time": now - last,
            "date": datetime.datetime.now(),
            "batch_sec": (now - last) / 4,
        }
        writer.writerow({"epoch": epoch, "loss": f"{loss:.5f}", "lr": 0.1, **values})
        last = now

    net.train(epochs=5, each_epoch=each_epoch)
