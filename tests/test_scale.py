"""Test the arithmetic of docs/lab/scale.md, and that the page is computed from the stored result."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import folding, reduction
from benchmarks.horizon import table
from benchmarks.page import DOCS
from benchmarks.reduction import DISK, RUNS, Measured, duration, height, levels, limits, size
from benchmarks.results import stored
from benchmarks.scale import assumptions, differences, joined, weights, wrapped
from detaudit.model import blocks
from detaudit.model.blocks import FAN_OUT, HeldTree


def test_the_page_in_the_repository_is_that_of_the_stored_result() -> None:
    """All of it but how long the simulation took, and what it held."""
    result = stored()["folding"]
    found = Measured.of(result)
    text = (DOCS / "scale.md").read_text()
    shown = table(["digests of each", "reduced by", "number", "they decide"], list(levels()))
    for part in map(wrapped, [assumptions(found), weights(found), differences(found), joined(found, result), shown]):
        assert part in text, "make bench-scale writes it"


def test_the_limits_are_those_of_the_result() -> None:
    """Of ranks that are a hundred times as small, a hundred times as many can be joined."""
    found = Measured.of(stored()["folding"])
    ranks = {what: int(count.replace(",", "")) for count, what, _ in limits(found)}
    smaller = {what: int(count.replace(",", "")) for count, what, _ in limits(replace(found, log=found.log / 100))}
    assert ranks["the disk holds all runs, unpacked"] == round(DISK / RUNS / found.log)
    assert smaller["the disk holds all runs, unpacked"] == round(DISK / RUNS / found.log * 100)
    assert list(ranks.values()) == sorted(ranks.values())


@pytest.mark.parametrize("steps", [1, blocks.BLOCK * FAN_OUT - 1, blocks.BLOCK * FAN_OUT, 10**6, 10**7])
def test_the_height_is_that_of_a_tree(steps: int) -> None:
    assert height(steps) == HeldTree(dict.fromkeys(range(blocks.block_of(steps) + 1), b"")).height


def test_sizes_and_times_have_the_unit_that_people_would_use() -> None:
    assert [size(one) for one in (32, 1_500, 4.746e8, 4.86e14, 1.5e15)] == [
        "32 bytes",
        "1.5 kB",
        "475 MB",
        "486 TB",
        "1,500 TB",
    ]
    assert [duration(one) for one in (0.5, 90, 7_200, 86_400 * 3, 86_400 * 3_000)] == [
        "0.5 s",
        "1.5 min",
        "2 h",
        "3 days",
        "3,000 days",
    ]


def test_the_simulation_finds_what_it_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "RUNS", 20)
    found = reduction.simulated()
    assert found.nodes == reduction.DIFFERENT * 2 * 3
    assert found.held > 20 * reduction.RANKS * reduction.DIGEST


def test_the_difference_between_generated_runs_is_found(tmp_path: Path) -> None:
    ranks = list(folding.fold_ranks(tmp_path, 3_000, 3, 2_500))
    assert all(one["tree"] < one["log"] / 100 for one in ranks)
    assert len(list((tmp_path / "a" / "logs").glob("*.jsonl"))) == 1, "only the rank that differs keeps its event log"
    found = folding.compare(tmp_path, 2_500)  # asserts that it is step 2,500, by trees and by event logs
    assert found["nodes"] == 8, "of four stages on both sides"
