"""What both kinds of bisection report: a table of trials, an answer, and what it rests on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from detaudit.model import Bisection, Group, Run, Source, VariationBisection, digits
from detaudit.model.number import count
from detaudit.report import run_table
from detaudit.report.blocks import Table
from detaudit.report.messages import differences, statuses

HEADERS = ("TRIAL", "RUNS", "SUM OF WEIGHTS", "FINAL LOSS", "DIGEST")
_PREFIX = "trial-"


@dataclass(frozen=True)
class Result:
    """A bisection in words.

    ``differing`` is a trial whose difference the answer does not explain, ``failed`` an inconclusive one.
    ``details`` are paragraphs, each with a heading; ``source`` is the first line of the user's code that may be why.
    """

    table: Table
    outcome: str
    sentence: str
    evidence: str
    differing: Group | None
    failed: Group | None
    details: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str]
    source: Source | None


def name(group: str) -> str:
    """Return the number of a trial, by the name of its group."""
    return group.removeprefix(_PREFIX)


def total(audit: Bisection | VariationBisection) -> str:
    """Return how many trials and runs there were."""
    return f"({count(len(audit.groups), 'trial')}, {count(audit.total_runs, 'run')})"


def cells(group: Group, runs: int, shown: Run | None) -> list[str]:
    """Return the columns of HEADERS, with the fingerprint of one of its runs."""
    rank = shown.ranks[0] if shown else None
    return [
        name(group.recipe.name),
        f"{runs:,}",
        digits(rank.sum_of_weights) if rank else "-",
        digits(rank.final_loss) if rank else "-",
        run_table.short_digest(rank),
    ]


def ended(audit: Bisection | VariationBisection) -> Iterator[str]:
    """Yield where the runs were ended, if all were at one step (--until)."""
    steps = {run.through for group in audit.groups for run in group.runs if run.finished}
    through = steps.pop() if len(steps) == 1 else None
    if through is not None:
        yield f"every run was ended after step {through:,}: nothing is known of later steps"


def match(group: Group) -> str:
    """Return whether the runs of a trial match, and where they differ."""
    found = group.first_difference
    if found is not None:
        return f"no: {differences.in_table(found)}"
    bad = next((run for run in group.runs if not run.finished), None)
    if bad is not None:
        return f"({statuses.NAMES[bad.status]})"
    return _how_far(group.runs) if len(group.runs) > 1 else "-"


def _how_far(runs: Sequence[Run]) -> str:
    """Return how far runs match that may have been ended: the second of them that went furthest."""
    ended = sorted(run.through for run in runs if run.through is not None)
    whole = len(runs) - len(ended)
    if whole > 1 or not ended:
        return f"yes, {whole:,} to the end" if ended else "yes"
    return f"yes, through step {ended[-1 if whole else -2]:,}"
