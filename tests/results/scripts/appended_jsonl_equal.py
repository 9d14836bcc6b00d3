"""Records of one JSON object a line, with the time of each."""

import json
import time

import net


def log(**values):
    with open("log.jsonl", "a") as file:
        file.write(json.dumps({"ts": time.time(), **values}) + "\n")


net.train(each_epoch=lambda epoch, loss: log(event="epoch", epoch=epoch, loss=loss))
log(event="end")
