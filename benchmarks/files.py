"""What it costs to compare the files that a run wrote: to find them, and to read them. All in CPU time."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios
from detaudit.launch import workspace
from detaudit.model.outputs import RunFacts
from detaudit.runs import values

FILES = 20_000
MEGABYTES = 400
TURNS = 5
SCAN = Goal(1.0)
READ = Goal(0.25, at_least=True)


def timed(action: Callable[[], object]) -> Callable[[], float]:
    """Return a function that measures the CPU time of an action."""

    def seconds() -> float:
        started = time.process_time()
        action()
        return time.process_time() - started

    return seconds


def make_files(folder: Path, number: int) -> None:
    """Fill a folder with empty files."""
    for place in range(number):
        below = folder / "data" / str(place // 200)
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{place}.txt").touch()


def walk(folder: Path) -> None:
    """Do the least that finds what changed: ask for the time of each file."""
    for parent, _, names in os.walk(folder):
        for name in names:
            os.lstat(os.path.join(parent, name))


def read_whole(path: Path) -> None:
    """Read a file once."""
    with path.open("rb") as file:
        while file.read(2**22):
            pass


def read(path: Path) -> None:
    """Read a file as one that a run wrote."""
    values.read(path, path.name, RunFacts(started=0.0, ended=60.0))


def found(scale: Scale, folder: Path) -> Row:
    """Return what the two listings take that one run needs."""
    number, results = scale.size(FILES, 500), folder / "results"
    make_files(folder, number)
    actions = {
        "walk": timed(lambda: walk(folder)),
        "find": timed(lambda: workspace.written(workspace.stamps(folder, results), workspace.stamps(folder, results))),
    }
    turns = in_turn(scale.turns(TURNS), actions)
    return Row(
        what=f"find what a run changed among {number:,} files",
        over="os.walk and os.lstat, once",
        ratios=ratios(turns, "find", "walk"),
        also=(Figure(median(turn["find"] for turn in turns), "s", SCAN),),
    )


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for finding files, and one for each format that is read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield found(scale, folder)
        layers = scale.size(MEGABYTES, 20) // 10
        weights = {f"layer{place}.weight": torch.rand(10, 2**18) for place in range(layers)}
        torch.save({"model": weights, "saved_at": time.time()}, folder / "model.pt")
        np.savez(folder / "model.npz", *(value.numpy() for value in weights.values()))
        for path, what in ((folder / "model.pt", "torch checkpoint"), (folder / "model.npz", ".npz")):
            actions = {"bytes": timed(lambda: read_whole(path)), "tensors": timed(lambda: read(path))}  # noqa: B023
            turns = in_turn(scale.turns(TURNS), actions)
            speed = path.stat().st_size / 1e9 / median(turn["tensors"] for turn in turns)
            yield Row(
                what=f"read the tensors of a {what}",
                over="read its bytes",
                ratios=ratios(turns, "tensors", "bytes"),
                also=(Figure(speed, "GB/s", READ),),
            )
