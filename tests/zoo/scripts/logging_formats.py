"""Handlers of logging in several formats, on both streams and in a file with a date in its name."""

import logging
import sys
import time

import net

formats = [
    "%(asctime)s - %(name)s - %(levelname)s - %(message)s",
    "[%(asctime)s][%(filename)s:%(lineno)d][%(process)d] %(message)s",
    "%(levelname).1s%(created)f %(thread)d %(relativeCreated)d] %(message)s",
    "%(asctime)s,%(msecs)d %(threadName)s {%(pathname)s} %(message)s",
]
log = logging.getLogger("train")
log.setLevel(logging.DEBUG)
outs = [
    logging.StreamHandler(sys.stdout),
    logging.StreamHandler(),
    logging.FileHandler(f"train_{time.strftime('%Y-%m-%d-%H-%M-%S')}.log"),
]
outs.append(logging.FileHandler("train.log", mode="w"))
for handler, text in zip(outs, formats):
    handler.setFormatter(logging.Formatter(text))
    log.addHandler(handler)
net.train(each_epoch=lambda epoch, loss: log.info("epoch %d loss %.4f", epoch, loss))
