"""A run is compared with another while it goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from detaudit.judge.live import Follower
from detaudit.model import RunRecord, Stage, Training
from tests.fakes import hello
from tests.judge.test_through import record, training

SAVED = replace(training(1), framework=Stage.SAVED)


def lines(*found: dict[str, Any]) -> list[bytes]:
    return [json.dumps(one, separators=(",", ":")).encode() for one in found]


def update(step: int, digest: str = "", lane: int = 0) -> dict[str, Any]:
    found = {"k": "event", "fw": "torch", "step": step, "stage": "update", "digest": digest or f"w{step}"}
    return {**found, "value": None, "lane": lane}


def rank(number: int | None, world: int | None = 2) -> dict[str, Any]:
    return hello(rank=number, world=world)


A, B = Path("1.0.jsonl"), Path("2.0.jsonl")


@pytest.mark.parametrize("more", [(), (SAVED,)])
def test_one_training_is_followed_whatever_it_saves(more: tuple[Training, ...]) -> None:
    follower = Follower(RunRecord(trainings=(training(4),), unhooked=more))
    assert not follower.differs(A, lines(hello(), update(1), update(2)))
    assert follower.differs(A, lines(update(3, "other")))


def test_ranks_are_followed_each_with_its_own() -> None:
    follower = Follower(record(training(4), training(4, changed=2)))
    assert not follower.differs(B, lines(rank(1), update(1), update(2, "w2x")))
    assert not follower.differs(A, lines(rank(0), update(1), update(2)))
    assert follower.differs(B, lines(update(3)))


def test_ranks_of_a_run_that_was_ended_are_followed_so_far() -> None:
    follower = Follower(record(training(4).through(2), training(4).through(2)))
    assert not follower.differs(A, lines(rank(0), update(1), update(2), update(3, "unknown")))
    assert follower.differs(B, lines(rank(1), update(1, "other")))


@pytest.mark.parametrize(
    "first",
    [hello(), rank(0, world=4), rank(None)],
    ids=["no rank", "more ranks than trainings", "a process beside the ranks"],
)
def test_what_is_not_one_training_of_each_rank_is_not_followed(first: dict[str, Any]) -> None:
    follower = Follower(record(training(4), training(4)))
    assert not follower.differs(A, lines(first, update(1, "other")))
    assert not follower.differs(B, lines(rank(1), update(1, "other")))


def test_a_second_training_of_a_rank_ends_it() -> None:
    follower = Follower(record(training(4), training(4)))
    assert not follower.differs(A, lines(rank(0), update(1), update(1, "other", lane=1)))
    assert not follower.differs(A, lines(update(2, "other")))


def test_frameworks_beside_each_other_are_not_followed() -> None:
    follower = Follower(record(training(4), training(4, framework="tensorflow")))
    assert not follower.differs(A, lines(rank(0), update(1, "other")))
