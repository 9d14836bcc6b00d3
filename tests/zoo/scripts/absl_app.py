"""absl.app with flags and its logging."""

import net
from absl import app, flags, logging

EPOCHS = flags.DEFINE_integer("epochs", 3, "epochs")


def main(argv):
    logging.set_verbosity(logging.INFO)
    logging.use_absl_handler()
    model = net.train(EPOCHS.value, lambda epoch, loss: logging.info("epoch %d loss %.4f", epoch, loss))
    logging.warning("loss %.4f", net.score(model))


app.run(main)
