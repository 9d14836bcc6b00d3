"""A whole `detaudit bisect` of a training, over the time of that training alone.

The training augments its data without a seed: one or two flags are needed, which show at the first step. Most of a step
is spent waiting, as for a device. The answer has to be the flags that are needed.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import DETAUDIT, script, seconds
from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios

QUICK_S = 2
NEEDED = ({"numpy-default-rng"}, {"numpy-default-rng", "python-random-seed"})


def bisect_s(target: list[str], needed: set[str], folder: Path) -> tuple[float, int]:
    """Return the seconds that a bisection takes, and its runs. Raises RuntimeError if its answer is wrong."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        took = seconds([*DETAUDIT, "bisect", target[0], "--out", f"{out}/out", "--", *target[1:]], folder)
        found = json.loads((Path(out) / "out" / "audit.json").read_text())
    flags = {one["flag"] for one in found["needed"]}
    if flags != needed:
        raise RuntimeError(f"needed: {sorted(needed)}, found: {sorted(flags)}")
    return took, found["total_runs"]


def measure(scale: Scale, length_s: int, needed: int, turns: int, goal: float | None = None) -> Iterator[Row]:
    """Yield the ratio for a training of a length in seconds, which needs one flag or two."""
    target = [script("waiting.py"), str(scale.size(length_s, QUICK_S)), str(needed)]
    runs = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)

        def bisected_s() -> float:
            took, number = bisect_s(target, NEEDED[needed - 1], folder)
            runs.append(number)
            return took

        alone = {"alone": lambda: seconds([sys.executable, *target], folder)}
        taken = in_turn(scale.turns(turns), {**alone, "bisect": bisected_s})
    length, flags = median(turn["alone"] for turn in taken), "one flag" if needed == 1 else "two flags"
    yield Row(
        what=f"detaudit bisect, {flags} needed, training of {length_text(length)}",
        over="one training",
        ratios=ratios(taken, "bisect", "alone"),
        goal=Goal(goal) if goal else None,
        also=(Figure(length, "s for one training"), Figure(median(runs), "runs in total")),
    )


def length_text(seconds: float) -> str:
    """Return a length in words."""
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
