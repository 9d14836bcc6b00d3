"""Which runs of a recipe have the same result, and the letters that mark them."""

from collections import Counter

from detaudit.model import Group

_FIRST, _LETTERS = ord("A"), 26


def results(group: Group) -> dict[int, int | None]:
    """Return the number of the result of each run, None for one that was ended before others, or is not compared.

    Reports of older versions have none: there, runs with the same fingerprints share one.
    """
    compared = [run for run in group.runs if run.counts and run not in group.shorter]
    found: dict[int, int | None] = {run.id: None for run in group.runs}
    if any(run.result is not None for run in group.runs):
        return found | {run.id: run.result for run in compared}
    seen: dict[tuple[object, ...], int] = {}
    return found | {
        run.id: seen.setdefault((run.ranks, run.first_difference), len(seen) + 1) for run in compared if run.ranks
    }


def ordered(group: Group) -> list[int]:
    """Return the numbers of the results: that of the first run, then the most frequent."""
    counts = Counter(found for found in results(group).values() if found is not None)
    return sorted(counts, key=lambda number: (number != 1, -counts[number], number))


def letters(group: Group) -> dict[int, str]:
    """Return the letters of the runs, by their numbers; none if all have the same result, or each one of its own."""
    found = {run: number for run, number in results(group).items() if number is not None}
    names = {number: _name(place) for place, number in enumerate(ordered(group))}
    if group.distinct_results == 1 or len(names) == len(found):
        return {}
    return {run: names[number] for run, number in found.items()}


def _name(place: int) -> str:
    """Return ``A`` to ``Z``, then ``AA``, ``AB`` and so on."""
    before, last = divmod(place, _LETTERS)
    return (_name(before - 1) if before else "") + chr(_FIRST + last)


def number(name: str) -> int:
    """Return the place of a letter: 0 for ``A``."""
    found = 0
    for letter in name:
        found = found * _LETTERS + ord(letter) - _FIRST + 1
    return found - 1
