"""Bars of rich with columns for the time and the speed."""

import net
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

columns = (
    SpinnerColumn(),
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)
with Progress(*columns) as progress:
    task = progress.add_task("training", total=5)

    def each_epoch(epoch, loss):
        progress.update(task, advance=1, description=f"loss {loss:.4f}")
        progress.console.print(f"epoch {epoch} done")

    net.train(epochs=5, each_epoch=each_epoch)
