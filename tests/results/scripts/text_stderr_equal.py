"""The log goes to stderr, with times and process IDs."""

import logging

import net

logging.basicConfig(
    level=logging.INFO, format="%(asctime)s.%(msecs)03d [%(process)d] %(levelname)s %(name)s: %(message)s"
)
model = net.train(each_epoch=lambda epoch, loss: logging.info("epoch %d, loss %.4f", epoch, loss))
logging.getLogger("eval").info("loss=%.5f", net.score(model))
