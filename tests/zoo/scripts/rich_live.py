"""A table of rich that grows, drawn as on a terminal, with a time in each row."""

import time

import net
from rich.console import Console
from rich.live import Live
from rich.table import Table

table = Table("epoch", "loss", "time (s)", title="training")
started = time.time()
with Live(table, console=Console(force_terminal=True, width=60), refresh_per_second=20):

    def each_epoch(epoch, loss):
        table.add_row(str(epoch), f"{loss:.4f}", f"{time.time() - started:.3f}")
        time.sleep(0.05)

    net.train(epochs=4, each_epoch=each_epoch)
