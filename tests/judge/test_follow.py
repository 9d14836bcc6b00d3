"""A run is compared with another while it goes on."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from detaudit.judge.live import Follower
from detaudit.model import RunRecord, Stage, Training
from tests.fakes import hello
from tests.judge.test_through import record, training
from tests.logs import news, row

SAVED = replace(training(1), framework=Stage.SAVED)


def update(step: int, digest: str = "", lane: int = 0) -> dict[str, Any]:
    return row(step, "update", digest or f"w{step}", lane=lane)


def rank(number: int | None, world: int | None = 2) -> dict[str, Any]:
    return hello(rank=number, world=world)


A, B = Path("1.0.jsonl"), Path("2.0.jsonl")


@pytest.mark.parametrize("more", [(), (SAVED,)])
def test_one_training_is_followed_whatever_it_saves(tmp_path: Path, more: tuple[Training, ...]) -> None:
    follower = Follower(RunRecord(trainings=(training(4),), unhooked=more))
    assert not follower.differs(A, news(tmp_path, hello(), update(1), update(2)))
    assert follower.differs(A, news(tmp_path, update(3, "other")))


def test_ranks_are_followed_each_with_its_own(tmp_path: Path) -> None:
    follower = Follower(record(training(4), training(4, changed=2)))
    assert not follower.differs(B, news(tmp_path, rank(1), update(1), update(2, "w2x")))
    assert not follower.differs(A, news(tmp_path, rank(0), update(1), update(2)))
    assert follower.differs(B, news(tmp_path, update(3)))


def test_ranks_of_a_run_that_was_ended_are_followed_so_far(tmp_path: Path) -> None:
    follower = Follower(record(training(4).through(2), training(4).through(2)))
    assert not follower.differs(A, news(tmp_path, rank(0), update(1), update(2), update(3, "unknown")))
    assert follower.differs(B, news(tmp_path, rank(1), update(1, "other")))


@pytest.mark.parametrize(
    "first",
    [hello(), rank(0, world=4), rank(None)],
    ids=["no rank", "more ranks than trainings", "a process beside the ranks"],
)
def test_what_is_not_one_training_of_each_rank_is_not_followed(tmp_path: Path, first: dict[str, Any]) -> None:
    follower = Follower(record(training(4), training(4)))
    assert not follower.differs(A, news(tmp_path, first, update(1, "other")))
    assert not follower.differs(B, news(tmp_path, rank(1), update(1, "other")))


def test_a_second_training_of_a_rank_ends_it(tmp_path: Path) -> None:
    follower = Follower(record(training(4), training(4)))
    assert not follower.differs(A, news(tmp_path, rank(0), update(1), update(1, "other", lane=1)))
    assert not follower.differs(A, news(tmp_path, update(2, "other")))


def test_frameworks_beside_each_other_are_not_followed(tmp_path: Path) -> None:
    follower = Follower(record(training(4), training(4, framework="tensorflow")))
    assert not follower.differs(A, news(tmp_path, rank(0), update(1, "other")))
