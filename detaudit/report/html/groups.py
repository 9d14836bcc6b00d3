"""What a page shows of the runs of one recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from detaudit.model import Group, RankRecord, Run, digits
from detaudit.model.number import count
from detaudit.report import run_table
from detaudit.report.marks import ordered, results
from detaudit.report.messages import differences, figures, statuses
from detaudit.report.messages.wording import duration

LETTERS = "ABCDEFG"
MOST_RUNS = 12
"""Runs that have a row each; of more, each result has one."""

MOST_RESULTS = 12


@dataclass(frozen=True)
class Digits:
    """A number: the digits that all runs share, and the others."""

    shared: str
    own: str


@dataclass(frozen=True)
class Row:
    """A run, or the runs with one result: ``kind`` is the class that colors it, ``where`` its first difference."""

    name: str
    run: int
    letter: str
    kind: str
    digest: str
    total: Digits
    loss: Digits
    steps: str
    time: str
    where: str
    mood: str
    result: int | None


def letters(group: Group) -> dict[int, str]:
    """Return the letters of the results of a group, by number: A is that of the first run, then the most frequent."""
    return dict(zip(ordered(group), LETTERS, strict=False))


def kinds(group: Group) -> dict[int, str]:
    """Return the classes that color the runs."""
    names, found = letters(group), results(group)
    return {run: f"k-{names.get(number, 'X')}" if number is not None else "k-X" for run, number in found.items()}


def rows(group: Group) -> list[Row]:
    """Return a row for each run of a group."""
    shown = {run.id: _rank(group, run) for run in group.runs}
    names, numbers = letters(group), results(group)
    known = [rank for rank in shown.values() if rank is not None]
    totals = _shared([digits(rank.sum_of_weights) for rank in known])
    losses = _shared([digits(rank.final_loss) for rank in known])
    base = group.first_finished.id if group.first_finished else 0
    found = []
    for run in group.runs:
        rank, number = shown[run.id], numbers[run.id]
        where, mood = _where(group, run, base, number)
        found.append(
            Row(
                name=str(run.id),
                run=run.id,
                letter=names.get(number, "") if number is not None else "",
                kind=kinds(group)[run.id],
                digest="-" if run in group.shorter else run_table.short_digest(rank),
                total=_split(digits(rank.sum_of_weights) if rank else "-", totals),
                loss=_split(digits(rank.final_loss) if rank and run not in group.shorter else "-", losses),
                steps=f"{run.steps:,}",
                time=duration(run.wall_s),
                where=where,
                mood=mood,
                result=number,
            )
        )
    return found


def by_result(found: Sequence[Row]) -> list[Row]:
    """Return a row for each result, the most frequent first, and one for each run without a result."""
    held: dict[int, list[Row]] = {}
    for row in found:
        if row.result is not None:
            held.setdefault(row.result, []).append(row)
    alone = [row for row in found if row.result is None]
    total = len(found)
    merged = [
        _merged(rows, f"{len(rows):,} of {count(total, 'run')} ({len(rows) / total:.0%})")
        for rows in sorted(held.values(), key=lambda rows: -len(rows))
    ]
    return [*merged, *alone]


def _merged(rows: Sequence[Row], name: str) -> Row:
    first = rows[0]
    return Row(**{**first.__dict__, "name": name})


def _rank(group: Group, run: Run) -> RankRecord | None:
    """Return the rank whose numbers are shown: the one that differs first, else the first."""
    place = group.first_difference.rank if group.first_difference else 0
    return next((rank for rank in run.ranks if rank.rank == place), next(iter(run.ranks), None))


def _where(group: Group, run: Run, base: int, number: int | None) -> tuple[str, str]:
    """Return where a run first differs, and the class that colors it."""
    if run in group.shorter or (not run.finished and run.first_difference is None):
        return statuses.NAMES[run.status], "unk"
    if run.first_difference is not None:
        return differences.in_table(run.first_difference), "diff"
    if run.id == base:
        return figures.REFERENCE if len(group.runs) > 1 else "", "mut"
    same = number is not None and number == results(group).get(base)
    return (figures.matches(run.reference or base), "same") if same else ("", "mut")


def _shared(texts: Sequence[str]) -> str:
    """Return the digits that several numbers begin with; none if all are the same."""
    if len(set(texts)) < 2:
        return ""
    low, high = min(texts), max(texts)
    return low[
        : next((place for place, pair in enumerate(zip(low, high, strict=False)) if len(set(pair)) > 1), len(low))
    ]


def _split(text: str, shared: str) -> Digits:
    return Digits(shared, text[len(shared) :]) if shared and text.startswith(shared) else Digits("", text)


def names_of_results(group: Group) -> Mapping[int, str]:
    """Return how a tooltip names the runs."""
    found = results(group)
    given = letters(group)
    return {run: given.get(number, "") if number is not None else "" for run, number in found.items()}
