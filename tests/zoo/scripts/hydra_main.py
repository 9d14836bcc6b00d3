"""hydra, with a folder and a log for each run."""

import logging

import hydra
import net


@hydra.main(version_base=None, config_path=None)
def main(config):
    model = net.train(each_epoch=lambda epoch, loss: logging.getLogger("train").info("epoch %d loss %.4f", epoch, loss))
    print(f"loss {net.score(model):.4f}")


main()
