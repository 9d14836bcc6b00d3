"""How often a number of runs catches a difference, from measured.yaml, beside what ``detaudit run`` promises for it."""

from collections.abc import Iterator, Mapping, Sequence
from math import comb
from typing import Any

from detaudit.judge.verdict import LEVEL, confidence

RUNS = (2, 3, 5, 10)


def partitions(runs: int, distinct: int, commonest: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways in which so many runs can fall into groups of equal results, the largest of them first."""
    rest, others = runs - commonest, distinct - 1
    excess = rest - others  # what is left once each other group has one run
    if not others:
        yield (commonest,)
        return
    for parts in _parts(excess, min(others, excess), commonest - 1):
        yield (commonest, *(1 + part for part in parts), *[1] * (others - len(parts)))


def _parts(total: int, most: int, largest: int) -> Iterator[tuple[int, ...]]:
    if not total:
        yield ()
        return
    for first in range(min(total, largest), 0, -1) if most else ():
        for rest in _parts(total - first, most - 1, first):
            yield (first, *rest)


def caught(groups: Sequence[int], runs: int) -> float:
    """Return the probability that so many of the measured runs, drawn at random, are not all equal."""
    return 1 - sum(comb(size, runs) for size in groups) / comb(sum(groups), runs)


def bounds(measured: Mapping[str, int], runs: int) -> tuple[float, float]:
    """Return the least and the greatest probability, if only the largest of the groups is known."""
    found = [
        caught(groups, runs) for groups in partitions(measured["runs"], measured["distinct"], measured["commonest"])
    ]
    return min(found), max(found)


def promised(runs: int) -> float:
    """Return the share of differing runs from which on this number of runs promises to catch them."""
    found = confidence(runs)
    return found.max_differing_rate if found is not None else 1.0


def kept(measured: Mapping[str, int], runs: int) -> bool | None:
    """Return whether the promise was kept, None if the difference is too rare for it.

    A difference shows up in a run if that run differs from another one.
    """
    rate, _ = bounds(measured, 2)
    return bounds(measured, runs)[0] >= LEVEL if rate >= promised(runs) else None


def lines(labels: Mapping[str, Mapping[str, Any]], measured: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the table of all scripts that differ, those whose runs all differ in one row."""
    scripts = [name for name, label in labels.items() if label["none"] == "N" and name in measured]
    always = [name for name in scripts if measured[name]["bare"]["commonest"] == 1]
    rows = ["| script | equal runs | " + " | ".join(f"{runs} runs" for runs in RUNS) + " |", "|---|---|" + "---|" * 4]
    rows.append("| *promised for differences in at least* | | " + _cells(f"{promised(n):.0%}" for n in RUNS))
    rows.append(f"| {len(always)} scripts | none | " + _cells(["100%"] * len(RUNS)))
    for name in sorted(set(scripts) - {*always}, key=lambda name: bounds(measured[name]["bare"], 2)):
        counted = measured[name]["bare"]
        cells = (_cell(counted, runs) for runs in RUNS)
        rows.append(f"| {name} | {counted['commonest']} of {counted['runs']} | " + _cells(cells))
    return rows


def _cells(cells: Any) -> str:
    return " | ".join(cells) + " |"


def _cell(counted: Mapping[str, int], runs: int) -> str:
    low, high = (f"{one:.1%}" for one in bounds(counted, runs))
    text = low if low == high else f"{low} to {high}"
    return {True: f"**{text}**", False: f"{text} (missed)", None: text}[kept(counted, runs)]
