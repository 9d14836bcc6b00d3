"""console.log: a time at the left, the file and the line at the right; and rich's handler of logging."""

import logging

import net
from rich.console import Console
from rich.logging import RichHandler

console = Console()
logging.basicConfig(level="INFO", format="%(message)s", handlers=[RichHandler()])
with console.status("training"):
    model = net.train(each_epoch=lambda epoch, loss: console.log(f"epoch {epoch}", {"loss": loss}))
logging.info("loss %.4f", net.score(model))
