"""The state of Python's generator is read from its memory, and that is the state that ``getstate`` returns."""

import ctypes  # noqa: F401
import random
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.recorder.training import generators

CHANGES: list[Callable[[], object]] = [
    lambda: random.seed(3),
    random.random,
    lambda: random.gauss(0, 1),
    lambda: random.setstate(random.Random(5).getstate()),
    lambda: random.shuffle([1, 2, 3]),
    lambda: [random.random() for _ in range(700)],
    lambda: None,
]


def expected() -> bytes:
    version, words, gauss = random.getstate()
    return repr((version, hash(words), gauss)).encode()


@given(st.lists(st.sampled_from(CHANGES)))
def test_each_change_is_noticed(changes: list[Callable[[], object]]) -> None:
    for change in changes:
        change()
        assert generators.state("random") == expected()
        assert generators.state("random") == expected()


def test_the_cached_half_of_a_pair_counts() -> None:
    random.gauss(0, 1)
    random.gauss(0, 1)
    before = generators.state("random"), random.getstate()
    random.gauss(0, 1)
    random.setstate((*before[1][:2], 0.5))
    assert generators.state("random") != before[0]


def test_an_unchanged_state_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ctypes" in sys.modules  # without it, the memory is not read
    before = generators.state("random")
    monkeypatch.setattr(random, "getstate", lambda: pytest.fail("read again"))
    assert generators.state("random") == before
