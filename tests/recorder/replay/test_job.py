"""How often a call is repeated, and how its results are counted."""

import ctypes
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detaudit.recorder.replay import job


class Call:
    """A call without a framework."""

    threads = 2
    may_differentiate = True

    def __init__(self) -> None:
        self.filled: list[int] = []

    def fill(self, byte: int) -> None:
        self.filled.append(byte)


def series(repeat: Callable[[], str | None], repeats: int = 6, seconds: float = 60, fills: tuple[int, ...] = ()) -> Any:
    request = {"condition": {"fills": fills}, "repeats": repeats, "seconds": seconds}
    return job._series(repeat, Call(), request)


@pytest.fixture
def set_bytes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Collect what glibc would be asked."""
    asked: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, option: int, value: int) -> int:
            asked.append((option, value))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    return asked


def test_results_are_counted() -> None:
    digests = itertools.cycle("xxy")
    assert series(lambda: next(digests)) == {"counts": {"": {"x": 4, "y": 2}}, "error": ""}


def test_memory_is_filled_with_one_byte_after_the_other(set_bytes: list[tuple[int, int]]) -> None:
    found = series(lambda: "x", repeats=5, fills=(0xAA, 0x00))
    assert found["counts"] == {"aa": {"x": 3}, "00": {"x": 2}}
    # M_PERTURB takes the complement, and 0 turns it off.
    assert set_bytes == [(-6, 0x55), (-6, 0xFF), (-6, 0x55), (-6, 0xFF), (-6, 0x55), (-6, 0)]


@pytest.mark.parametrize(("fills", "repeats"), [((), 2), ((1, 2, 3), 6)])
def test_each_byte_is_used_twice_however_long_that_takes(
    set_bytes: list[tuple[int, int]], fills: tuple[int, ...], repeats: int
) -> None:
    found = series(lambda: "x", repeats=100, seconds=0, fills=fills)
    assert sum(sum(counts.values()) for counts in found["counts"].values()) == repeats


def test_an_error_ends_the_repeats_and_filling(set_bytes: list[tuple[int, int]]) -> None:
    def fail() -> str:
        raise RuntimeError("no implementation")

    assert series(fail, fills=(1,)) == {"counts": {}, "error": "RuntimeError: no implementation"}
    assert set_bytes[-1] == (-6, 0)


def test_a_call_without_a_gradient_has_no_results() -> None:
    assert series(lambda: None) == {"counts": {}, "error": ""}


def test_a_request_that_fails_leaves_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"call": {"path": ["here"], "framework": "no_such"}, "result": str(tmp_path / "result.json")}
    (tmp_path / "request.json").write_text(json.dumps(request))
    monkeypatch.setattr("sys.path", ["there"])
    job.main(str(tmp_path / "request.json"))
    assert "failed" in json.loads((tmp_path / "result.json").read_text())
