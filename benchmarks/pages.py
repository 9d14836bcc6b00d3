"""What an HTML report costs: `detaudit report --format html` against the same with `--format json`, and its size.

The event logs are generated. Of 100 runs, each differs from all others from its middle on; of 5 long ones, one differs
from the middle on and one at the last step. Both take turns, as whole commands in wall time; only the page needs the
event logs. Its size *beside its data* is without the values that its figures show when they are pointed at.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import comparison
from benchmarks.commands import DETAUDIT, seconds
from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios

TURNS = 2
BESIDE_KB = Goal(300)
DATA = re.compile(rb"data-values='[^']*'")


def generate(folder: Path, runs: int, steps: int) -> None:
    """Write the event logs of runs that differ, and audit them."""
    if runs == comparison.RUNS:
        comparison.generate(folder, steps, different=False)
    else:
        for run in range(1, runs + 1):
            log = folder / str(run) / "logs" / comparison.LOG
            comparison.write(log, steps, steps // 2 if run > 1 else 0, run)
    comparison.audited(folder, runs)


def sizes(page: bytes) -> tuple[float, float]:
    """Return the size of a page and what is left of it without its data, in KB."""
    return len(page) / 1e3, (len(page) - sum(map(len, DATA.findall(page)))) / 1e3


def measure(scale: Scale, runs: int, steps: int) -> Iterator[Row]:
    """Yield the row of so many runs of so many steps."""
    steps = scale.size(steps, min(steps, 300))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, runs, steps)
        words = [*DETAUDIT, "report", str(folder / "out"), "-o"]
        actions = {
            "html": lambda: seconds([*words, "page.html", "--format", "html"], folder),
            "json": lambda: seconds([*words, "page.json", "--format", "json"], folder),
        }
        turns = in_turn(scale.turns(TURNS), actions)
        whole, beside = sizes((folder / "page.html").read_bytes())
    yield Row(
        what=f"the HTML report of {runs} runs of {steps:,} steps",
        over="the same report as JSON",
        ratios=ratios(turns, "html", "json"),
        also=(
            Figure(beside, "KB beside its data", BESIDE_KB),
            Figure(whole, "KB in all"),
            Figure(median(turn["html"] for turn in turns), "s"),
        ),
    )
