"""Lines of JSON in xz, with times."""

import json
import lzma
import time

import net

with lzma.open("log.jsonl.xz", "wt") as file:
    net.train(
        each_epoch=lambda epoch, loss: file.write(
            json.dumps({"time": time.time(), "epoch": epoch, "loss": loss}) + "\n"
        )
    )
