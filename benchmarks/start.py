"""What starts often: `detaudit --help`, and a Python that imports no framework, with the recorder and without it.

Whole processes in wall time.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.commands import DETAUDIT
from benchmarks.pace import recorded
from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios

TURNS = 25


def seconds(words: Sequence[str], env: dict[str, str]) -> float:
    """Return the wall time of one process."""
    started = time.perf_counter()
    subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for the command and one for the recorder."""
    # Bytecode is on disk, as in an installed package. The first start of each command writes it and is not counted.
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    python = [sys.executable, "-c", "pass"]
    with tempfile.TemporaryDirectory() as folder:
        with_recorder = {**bare, **recorded(Path(folder) / "logs")}
        actions = {
            "python": lambda: seconds(python, bare),
            "recorder": lambda: seconds(python, with_recorder),
            "help": lambda: seconds([*DETAUDIT, "--help"], bare),
        }
        in_turn(1, actions)
        turns = in_turn(scale.turns(TURNS), actions)
    help_ms = median(turn["help"] for turn in turns) * 1e3
    added_ms = median(turn["recorder"] - turn["python"] for turn in turns) * 1e3
    yield Row(
        what="detaudit --help",
        over="the start of Python alone",
        ratios=ratios(turns, "help", "python"),
        also=(Figure(help_ms, "ms", Goal(250)),),
    )
    yield Row(
        what="the start of Python with the recorder",
        over="without it",
        ratios=ratios(turns, "recorder", "python"),
        also=(Figure(added_ms, "ms more", Goal(10)),),
    )
