"""Time whole commands: trainings alone, and what detaudit does with them."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Scale
from benchmarks.trainings import SCRIPTS

DETAUDIT = (sys.executable, "-m", "detaudit")
LONG_ENOUGH_S = 4.0
QUICK_STEPS = 3


def script(name: str) -> str:
    """Return the path of a training."""
    return str(SCRIPTS / name)


def seconds(words: Sequence[str], folder: Path, status: int = 0) -> float:
    """Return how long a command takes in a folder. Raises RuntimeError with what it said at another exit status."""
    started = time.monotonic()
    done = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
    took = time.monotonic() - started
    check(words, status, done.returncode, done.stdout + done.stderr)
    return took


def check(words: Sequence[str], expected: int, status: int, said: str) -> None:
    """Raise RuntimeError if a command has not the expected exit status: then its time means nothing."""
    if status != expected:
        raise RuntimeError(f"exit status {status}, not {expected}: {' '.join(words)}\n{said[-2000:]}")


def steps_in(name: str, length_s: float, scale: Scale, folder: Path) -> int:
    """Return how many steps a training does in about this many seconds beyond its start."""
    if scale.quick:
        return QUICK_STEPS

    def train_s(steps: int) -> float:
        return seconds([sys.executable, script(name), str(steps)], folder)

    start, steps = train_s(1), 4
    while (took := train_s(steps) - start) < min(LONG_ENOUGH_S, length_s / 4):
        steps *= 4
    return max(1, round(steps * length_s / took))
