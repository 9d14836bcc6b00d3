"""The log goes to stderr, with an accuracy that differs."""

import logging

import net

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
model = net.train(each_epoch=lambda epoch, loss: logging.info("epoch %d, loss %.4f", epoch, loss))
logging.getLogger("eval").info("loss=%.5f", net.noisy_score(model))
