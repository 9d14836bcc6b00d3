"""alive-progress, whose bars move on their own."""

import time

import net
from alive_progress import alive_bar

with alive_bar(4, force_tty=True, title="training") as bar:

    def each_epoch(epoch, loss):
        bar.text = f"loss {loss:.4f}"
        time.sleep(0.05)
        bar()

    net.train(epochs=4, each_epoch=each_epoch)
