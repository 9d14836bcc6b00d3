"""Logging redirected through tqdm, in which nothing is torn."""

import logging

import net
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
with logging_redirect_tqdm(), tqdm(total=5) as bar:

    def each_epoch(epoch, loss):
        logging.info("epoch %d: loss %.4f", epoch, loss)
        bar.update()

    net.train(epochs=5, each_epoch=each_epoch)
