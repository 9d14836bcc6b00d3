"""A whole `detaudit run --runs 5` of a deterministic training against a shell loop that trains five times.

The trainings are real, and take about half a minute each on the machine that measures: a GPT on the text of Python's
documentation, a CNN on scikit-learn's digits, and a Keras model on the same. Both take turns, as whole commands in wall
time, with the start of each process, the comparison and the report.

What `--full` adds is recording: a millisecond of Python for a step of torch, three for one of Keras, of the GPT a
digest of 43 MB of weights, and with TensorFlow a second for each process. By default a short run comes first, the start
of a process and five seconds of training: a tenth of five trainings of half a minute.
"""

import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.commands import DETAUDIT, script, seconds, steps_in
from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios

LENGTH_S = 20
RUNS = 5
TURNS = 5
GOALS = {"detaudit run": Goal(1.06), "detaudit run --full": Goal(1.03)}
LOOP = 'run=0; while [ $run -lt $RUNS ]; do "$0" "$@" || exit 1; run=$((run + 1)); done'


def ways() -> dict[str, list[str]]:
    """Return the options to audit with: none, and ``--full`` if there are runs that may not go to their ends."""
    offered = subprocess.run([*DETAUDIT, "run", "--help"], check=True, capture_output=True, text=True).stdout
    return {"detaudit run": [], **({"detaudit run --full": ["--full"]} if "--full" in offered else {})}


def audit_s(target: Sequence[str], options: Sequence[str], folder: Path) -> float:
    """Return the seconds that an audit takes, which has to find the training deterministic."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        return seconds([*DETAUDIT, "run", target[0], *options, "--out", f"{out}/out", "--", *target[1:]], folder)


def measure(scale: Scale, name: str, what: str) -> Iterator[Row]:
    """Yield the ratio for one training, for each way to audit it."""
    runs = scale.size(RUNS, 2)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        target = [script(name), str(steps_in(name, LENGTH_S, scale, folder))]
        loop = ["env", f"RUNS={runs}", "sh", "-c", LOOP, sys.executable, *target]
        actions: dict[str, Callable[[], float]] = {"loop": lambda: seconds(loop, folder)}
        for way, options in ways().items():
            actions[way] = functools.partial(audit_s, target, [*options, "--runs", str(runs)], folder)
        turns = in_turn(scale.turns(TURNS), actions)
    alone = Figure(median(turn["loop"] / runs for turn in turns), "s for one training")
    for way in ways():
        yield Row(
            what=f"{way} --runs {runs}, {what}",
            over=f"a shell loop that trains {runs} times",
            ratios=ratios(turns, way, "loop"),
            goal=GOALS[way],
            also=(alone,),
        )
