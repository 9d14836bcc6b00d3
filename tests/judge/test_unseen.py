"""A program with a framework and a rank that left no event log are found, and nothing else is."""

from typing import Any

import pytest

from detaudit.launch import Program, RunOutcome
from detaudit.model import Training
from detaudit.model.problems import ProcessUnseen, RanksUnseen
from detaudit.runs.log import Process
from detaudit.runs.log_records import Hello
from detaudit.runs.status import unseen

OURS, OTHER = (1, 2, 3, 4), (5, 6, 7, 8)


def process(pid: int = 7, rank: int | None = None, world: int | None = None, program: Any = OURS) -> Process:
    hello = Hello(1, pid, 1, ("python", "train.py"), "3.11.7", rank, (), world, program)
    return Process(hello, trainings=(Training(framework="torch", steps=1),))


def ran(*command: str, addresses: Any = OTHER, variables: bool = True, path: bool = True, pid: int = 8) -> RunOutcome:
    program = Program(pid, addresses, command, "torch", variables, path)
    return RunOutcome(0, 1.0, programs=(program, program))


def test_a_recorded_program_and_its_forks_are_seen() -> None:
    assert unseen(ran("python", "train.py", addresses=OURS, pid=9), [process()]) == ()
    assert unseen(ran("python", "train.py", addresses=(), pid=7), [process(program=())]) == ()


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (ran("python", "-I", "a.py"), "isolated"),
        (ran("python", "-uE", "a.py"), "isolated"),
        (ran("python", "a.py", "-I", variables=False, path=False), "environment"),
        (ran("python", "--check-hash-based-pycs", "a.py", path=False), "path"),
        (ran("./trainer", "-m", "-S"), "unknown"),
        (ran("python", "a.py", addresses=(), pid=9), "unknown"),
    ],
)
def test_a_program_without_a_record_is_named_with_its_reason(outcome: RunOutcome, why: str) -> None:
    (found,) = unseen(outcome, [process()])
    assert isinstance(found, ProcessUnseen)
    assert (found.command, found.why) == (" ".join(outcome.programs[0].command), why)


def test_the_command_of_a_program_is_named_without_secrets() -> None:
    (found,) = unseen(ran("python", "a.py", "--token", "abc"), [process()])
    assert isinstance(found, ProcessUnseen)
    assert found.command == "python a.py --token ***"


def test_a_rank_without_a_record_is_missed() -> None:
    nothing = RunOutcome(0, 1.0)
    assert unseen(nothing, [process(rank=0, world=3), process(rank=2, world=3)]) == (RanksUnseen(ranks=(1,), world=3),)
    assert unseen(nothing, [process(rank=0, world=2), process(rank=1, world=2)]) == ()
    assert unseen(nothing, [process()]) == ()


def test_of_a_world_of_any_size_the_first_ranks_are_listed() -> None:
    (found,) = unseen(RunOutcome(0, 1.0), [process(rank=0, world=10**15)])
    assert isinstance(found, RanksUnseen)
    assert found.ranks == tuple(range(1, 1001))
