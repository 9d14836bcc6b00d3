"""Measure how often bisections of long trainings are wrong, and what they cost, on simulated trainings of an hour.

``make bench-horizon`` runs it and writes docs/lab/horizon.md. The search is the one of ``detaudit bisect``; a simulated
training stands in for the runs. One unit of cost is the time of one whole training.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from detaudit.bisect.search import Answer
from tests.bisect.families import EARLY, FAMILIES, LATE_AND_RARE, STEPS
from tests.bisect.simulated import Case, Cause, case

CASES = 600
WHOLE_CASES = 150
LENGTHS_S = (60, 600, 3600, 36_000)

Bisect = Callable[[Case], Answer]

HEAD = """\
# How far the runs of a bisection go: what is overlooked, what it costs

Simulated trainings of an hour (3,600 steps, T) with 24 candidates; the needed flag is the first to be tried 4 times of
5. Each answer is that of the search of `detaudit bisect`. *Wrong* means that the set is incomplete, that one of its
flags is not needed, or that none was found. Costs are in whole trainings. *Whole runs* are bisections in which each run
goes to its end, without what they would spend on measuring what flags cost. "A race, T/36" may show at each step, first
after T/36 on average; "1 run in 4, at T/20" shows in a quarter of all runs, at that step.
"""

LATE = """\
## Late and rare

No schedule of a few whole runs notices what begins after T/16 and shows in few of them. Reports say so, and `--full N`
takes N runs to their ends.
"""

LENGTHS = """\
## How long the training is

One needed flag that shows at step 1, and one that shows at T/36 on average, with start-up times of 5 s.
"""


def row(causes: Sequence[Cause], cases: int, bisect: Bisect, seconds: int = STEPS) -> tuple[float, list[float]]:
    """Return the share of wrong answers, and the costs in ascending order."""
    wrong, costs = 0, []
    for seed in range(cases):
        one = case(causes, seed, STEPS, seconds / STEPS)
        wrong += not one.is_right(bisect(one))
        costs.append(one.training.cost)
    return wrong / cases, sorted(costs)


def cells(wrong: float, costs: Sequence[float]) -> list[str]:
    """Return a row of the table."""
    ninth = costs[int(0.9 * len(costs))]
    return [f"{wrong:.1%}", f"{statistics.median(costs):.1f}", f"{statistics.mean(costs):.1f}", f"{ninth:.1f}"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def families(found: Mapping[str, Sequence[Cause]], full: int | None = None) -> str:
    """Return the table of families of causes."""
    rows = []
    for name, causes in found.items():
        print(name, file=sys.stderr)
        ours = cells(*row(causes, CASES, lambda one: one.bisect(full)))
        whole = cells(*row(causes, WHOLE_CASES, Case.bisect_whole))
        rows.append([name, *ours, *whole[:2]])
    return table(["causes", "wrong", "median", "mean", "9 of 10 at most", "whole runs: wrong", "median"], rows)


def lengths() -> str:
    """Return the table of trainings of different lengths."""
    rows = []
    race = FAMILIES["(b) a race, T/36"]
    for seconds in LENGTHS_S:
        for name, causes in (("step 1", (EARLY,)), ("a race, T/36", race)):
            wrong, costs = row(causes, CASES // 3, Case.bisect, seconds)
            rows.append([f"{seconds:,} s", name, *cells(wrong, costs)])
    return table(["training", "cause", "wrong", "median", "mean", "9 of 10 at most"], rows)


def main() -> None:
    """Write the document."""
    started = time.monotonic()
    runs = CASES * (len(FAMILIES) + 2 * len(LATE_AND_RARE)) + CASES // 3 * 2 * len(LENGTHS_S)
    parts = [
        HEAD,
        families(FAMILIES),
        LATE,
        families(LATE_AND_RARE),
        "With `--full 17`:\n",
        families(LATE_AND_RARE, 17),
        LENGTHS,
        lengths(),
        f"`make bench-horizon` writes this page: {runs:,} simulated bisections, beside those of whole runs.\n",
    ]
    Path(sys.argv[1]).write_text("\n".join(parts))
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
