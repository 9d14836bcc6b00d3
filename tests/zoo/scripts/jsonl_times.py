"""A log as lines of JSON with times, appended to the last one."""

import datetime
import json
import time

import net

started = time.time()


def each_epoch(epoch, loss):
    record = {
        "epoch": epoch,
        "train": {"loss": loss, "time": time.time() - started},
        "ts": time.time_ns(),
        "at": datetime.datetime.now().astimezone().isoformat(),
        "samples_per_second": 96 * epoch / (time.time() - started),
    }
    with open("log.jsonl", "a") as file:
        file.write(json.dumps(record) + "\n")


net.train(epochs=5, each_epoch=each_epoch)
