"""loguru on stderr with colors, in a file with a date, and as JSON."""

import sys

import net
from loguru import logger

logger.add(sys.stdout, colorize=True, format="<green>{time}</green> <level>{message}</level> {elapsed}")
logger.add("logs/{time}.log", rotation="1 MB")
logger.add("log.jsonl", serialize=True, mode="w")
net.train(each_epoch=lambda epoch, loss: logger.info("epoch {} loss {:.4f}", epoch, loss))
