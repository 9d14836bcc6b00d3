"""A log that is rotated when it is full, and one that is rotated by time."""

import logging
import logging.handlers

import net

log = logging.getLogger("train")
log.setLevel(logging.INFO)
rotating = logging.handlers.RotatingFileHandler("train.log", mode="w", maxBytes=400, backupCount=3)
timed = logging.handlers.TimedRotatingFileHandler("hourly.log", when="H")
for handler in (rotating, timed):
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
net.train(epochs=12, each_epoch=lambda epoch, loss: log.info("epoch %02d loss %.4f", epoch, loss))
