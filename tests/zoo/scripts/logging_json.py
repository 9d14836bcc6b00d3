"""Records of logging as JSON, on stdout and in a file that grows."""

import datetime
import json
import logging
import os
import sys

import net


class AsJson(logging.Formatter):
    def format(self, record):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        values = {"timestamp": now, "level": record.levelname, "pid": record.process, "thread": record.thread}
        return json.dumps({**values, "message": record.getMessage(), "took_ms": record.relativeCreated})


logging.root.setLevel(logging.INFO)
for handler in (logging.StreamHandler(sys.stdout), logging.FileHandler("log.json")):
    handler.setFormatter(AsJson())
    logging.root.addHandler(handler)
net.train(each_epoch=lambda epoch, loss: logging.info("epoch %d loss %.4f", epoch, loss))
logging.info("process %d done", os.getpid())
