"""A whole `detaudit run` of a training that uses one thread, one run at a time, against two runs at once.

The training is a CNN on scikit-learn's digits. Both take turns, as whole commands in wall time, each with a copy of the
working folder for every run. [jobs.md](jobs.md) has which races runs at once hide.
"""

import functools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.commands import DETAUDIT, script, seconds, steps_in
from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios

SCRIPT = "cnn.py"
LENGTH_S = 15
RUNS = 4
TURNS = 3
GOAL = Goal(1.7, at_least=True)
ONE_THREAD = ("env", "OMP_NUM_THREADS=1")


def audit_s(steps: int, options: Sequence[str], folder: Path) -> float:
    """Return the seconds that an audit takes, which has to find the training deterministic."""
    with tempfile.TemporaryDirectory() as out:
        words = [*DETAUDIT, "run", script(SCRIPT), "--isolate", *options, "--out", f"{out}/out", "--", str(steps)]
        return seconds([*ONE_THREAD, *words], folder)


def measure(scale: Scale) -> Iterator[Row]:
    """Yield the ratio."""
    runs = str(scale.size(RUNS, 2))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        steps = steps_in(SCRIPT, LENGTH_S, scale, folder)
        whole = ["--full", "--runs", runs]
        actions = {jobs: functools.partial(audit_s, steps, [*whole, "--jobs", jobs], folder) for jobs in ("1", "2")}
        turns = in_turn(scale.turns(TURNS), actions)
    yield Row(
        what=f"detaudit run --runs {runs} --jobs 1",
        over="the same with --jobs 2",
        ratios=ratios(turns, "1", "2"),
        goal=GOAL,
        also=(Figure(median(turn["1"] for turn in turns), "s one at a time"),),
    )
