"""The table of the runs of one recipe."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from detaudit.model import FITTED, NAMED, UNHOOKED, Group, RankRecord, Run, digits, is_inference
from detaudit.report.blocks import Table
from detaudit.report.fit import without
from detaudit.report.marks import letters
from detaudit.report.messages import differences, statuses
from detaudit.report.messages.wording import duration

RANK, PART = "RANK", "PART"
COLUMNS = ("RUN", RANK, "SUM OF WEIGHTS", "FINAL LOSS", "STEPS", "TIME", "DIGEST", "FIRST DIFFERENCE")
MARKED = "runs with the same letter have the same result"


def table(group: Group) -> Table:
    """Return a table of the runs, without the column of ranks if no run has several."""
    marks = letters(group)
    rows = [row for run in group.runs for row in _rows(group, run, marks.get(run.id, ""))]
    found = Table(COLUMNS, rows, MARKED if marks else "")
    if group.through is not None:
        found = _of_ended(found)
    if calls_only(rank for run in group.runs for rank in run.ranks):
        found = of_calls(found)
    return of_parts(found) if any(len(run.ranks) > 1 for run in group.runs) else without_ranks(found)


def of_parts(found: Table) -> Table:
    """Return a table whose column of ranks is one of parts if not all in it are numbers, as for a file or a fit."""
    names = [row[list(found.headers).index(RANK)] for row in found.rows]
    return found if all(name.isdigit() for name in names if name) else _renamed(found, RANK, PART)


def without_ranks(found: Table) -> Table:
    """Return a table without its column of ranks."""
    return without(found, RANK)


def calls_only(ranks: Iterable[RankRecord]) -> bool:
    """Whether models were called and nothing was trained."""
    frameworks = {rank.framework for rank in ranks}
    return bool(frameworks) and all(map(is_inference, frameworks))


def of_calls(found: Table) -> Table:
    """Return a table for calls of models: without weights and losses, and with calls instead of steps."""
    return _renamed(without(without(found, "SUM OF WEIGHTS"), "FINAL LOSS"), "STEPS", "CALLS")


def _of_ended(found: Table) -> Table:
    """Return a table for runs that were ended: without sums of weights, and with the losses and weights by then."""
    return _renamed(without(found, "SUM OF WEIGHTS"), "FINAL LOSS", "LOSS")


def _renamed(found: Table, old: str, new: str) -> Table:
    return replace(found, headers=[new if header == old else header for header in found.headers])


def _rows(group: Group, run: Run, mark: str) -> Iterator[list[str]]:
    time, early = duration(run.wall_s), run in group.shorter
    for place, rank in enumerate(run.ranks or (None,)):
        first = place == 0
        yield [
            f"{run.id:,}" if first else "",
            rank_name(rank) if rank else "",
            digits(rank.sum_of_weights) if rank else "-",
            digits(rank.final_loss) if rank and not early else "-",
            _steps(run, rank),
            time if first else "",
            "-" if early else f"{short_digest(rank)} {mark if first else ''}".rstrip(),
            _difference(group, run, rank),
        ]


def _difference(group: Group, run: Run, rank: RankRecord | None) -> str:
    left = run.first_difference is not None and run.first_difference.output is not None
    if run in group.shorter or not (run.finished or left):
        return f"({statuses.NAMES[run.status]})" if rank is None or rank.rank == 0 else ""
    base = next((r.id for r in group.runs if r.finished), None)
    found = run.first_difference
    if found is None or (rank is not None and rank.rank not in found.ranks):
        return ""
    return differences.in_table(found) + (f" (vs run {run.reference})" if run.reference not in (None, base) else "")


def short_digest(record: RankRecord | None) -> str:
    """Return the start of a digest, ``-`` if there is none."""
    return record.digest[:8] if record is not None and record.digest else "-"


def rank_name(record: RankRecord) -> str:
    """Return a rank for a table: its number, or what was fitted or compared without a hook."""
    return record.framework if record.framework in (*FITTED, *UNHOOKED) else str(record.rank)


def _steps(run: Run, record: RankRecord | None) -> str:
    if record is not None and record.framework in NAMED:
        return "-"
    return f"{record.steps if record else run.steps:,}"
