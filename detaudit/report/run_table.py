"""The table of the runs of one recipe."""

from collections.abc import Iterable, Iterator

from detaudit.model import FITTED, NAMED, UNHOOKED, Group, RankRecord, Run, Stage, digits, is_inference
from detaudit.report.blocks import Table
from detaudit.report.messages import differences, statuses

COLUMNS = ("RUN", "RANK", "SUM OF WEIGHTS", "FINAL LOSS", "STEPS", "TIME", "DIGEST", "FIRST DIFFERENCE")


def table(group: Group) -> Table:
    """Return a table of the runs, without the column of ranks if no run has several."""
    rows = [row for run in group.runs for row in _rows(group, run)]
    found = Table(COLUMNS, rows)
    if group.through is not None:
        found = _of_ended(found)
    if calls_only(rank for run in group.runs for rank in run.ranks):
        found = of_calls(found)
    return found if any(len(_shown_ranks(group, run)) > 1 for run in group.runs) else without_ranks(found)


def _shown_ranks(group: Group, run: Run) -> list[RankRecord]:
    """Return the fingerprints to show: saved files only if they differ, or if nothing else was recorded."""
    differ = any(one.first_difference and one.first_difference.stage is Stage.SAVED for one in group.runs)
    trained = [rank for rank in run.ranks if rank.framework != Stage.SAVED]
    return list(run.ranks) if differ or not trained else trained


def without_ranks(found: Table) -> Table:
    """Return a table without its column of ranks."""
    return _without(found, "RANK")


def calls_only(ranks: Iterable[RankRecord]) -> bool:
    """Whether models were called and nothing was trained."""
    frameworks = {rank.framework for rank in ranks} - {Stage.SAVED}
    return bool(frameworks) and all(map(is_inference, frameworks))


def of_calls(found: Table) -> Table:
    """Return a table for calls of models: without weights and losses, and with calls instead of steps."""
    found = _without(_without(found, "SUM OF WEIGHTS"), "FINAL LOSS")
    return Table(["CALLS" if header == "STEPS" else header for header in found.headers], found.rows)


def _of_ended(found: Table) -> Table:
    """Return a table for runs that were ended: without sums of weights, and with the losses and weights by then."""
    found = _without(found, "SUM OF WEIGHTS")
    return Table(["LOSS" if header == "FINAL LOSS" else header for header in found.headers], found.rows)


def _without(found: Table, header: str) -> Table:
    place = found.headers.index(header)
    headers, *rows = ([*row[:place], *row[place + 1 :]] for row in (found.headers, *found.rows))
    return Table(headers, rows)


def _rows(group: Group, run: Run) -> Iterator[list[str]]:
    time, early = f"{run.wall_s:.1f} s", run in group.shorter
    for place, rank in enumerate(_shown_ranks(group, run) or (None,)):
        first = place == 0
        yield [
            str(run.id) if first else "",
            rank_name(rank) if rank else "",
            digits(rank.sum_of_weights) if rank else "-",
            digits(rank.final_loss) if rank and not early else "-",
            _steps(run, rank),
            time if first else "",
            "-" if early else short_digest(rank),
            _difference(group, run, rank),
        ]


def _difference(group: Group, run: Run, rank: RankRecord | None) -> str:
    if not run.finished:
        return f"({statuses.NAMES[run.status]})" if rank is None or rank.rank == 0 else ""
    if run in group.shorter:
        return f"({statuses.NAMES[run.status]})" if rank is None or rank.rank == 0 else ""
    base = next(r.id for r in group.runs if r.finished)
    found = run.first_difference
    if found is None or (rank is not None and found.rank != rank.rank):
        return ""
    return f"{differences.in_table(found)} (vs run {run.reference or base})"


def short_digest(record: RankRecord | None) -> str:
    """Return the start of a digest, ``-`` if there is none."""
    return record.digest[:8] if record is not None and record.digest else "-"


def rank_name(record: RankRecord) -> str:
    """Return a rank for a table: its number, or what was fitted or compared without a hook."""
    return record.framework if record.framework in (*FITTED, *UNHOOKED) else str(record.rank)


def _steps(run: Run, record: RankRecord | None) -> str:
    if record is not None and record.framework in NAMED:
        return "-"
    return str(record.steps if record else run.steps)
