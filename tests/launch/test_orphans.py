"""Which run an orphan belongs to, and whose end is learned where."""

import os
from dataclasses import dataclass, field

import psutil
import pytest

from detaudit import wire
from detaudit.launch import processes


@dataclass
class Child:
    """A child of the audit: the first process of a run, an orphan of one, or a helper."""

    pid: int
    mark: str = ""
    state: str = psutil.STATUS_SLEEPING
    below: list["Child"] = field(default_factory=list)

    def children(self, recursive: bool = False) -> list["Child"]:
        return self.below

    def environ(self) -> dict[str, str]:
        return {wire.ENV_MARK: self.mark} if self.mark else {}

    def status(self) -> str:
        return self.state


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    """Return what the audit is the parent of: two runs, whose leaders are 1 and 2, and a helper, 9."""
    found = [Child(1, "m-0", below=[Child(11, "m-0")]), Child(2, "m-1"), Child(9)]
    audit = Child(0, below=found)
    monkeypatch.setattr(psutil, "Process", lambda: audit)
    monkeypatch.setattr(processes, "_kept", {9})
    monkeypatch.setattr(processes, "_runs", {})
    processes.begin("m-0", 1, {1, 11, 30})
    processes.begin("m-1", 2, {2, 40})
    return found


def pids(mark: str) -> list[int]:
    return [one.pid for one in processes.descendants(mark)]


def test_an_orphan_belongs_to_the_run_that_it_was_seen_in_or_whose_mark_it_has(children: list[Child]) -> None:
    children += [Child(30), Child(40), Child(50, "m-0"), Child(60, "m-1"), Child(70)]
    assert pids("m-0") == [1, 11, 30, 50]
    assert pids("m-1") == [2, 40, 60]


def test_the_last_run_under_way_ends_what_nobody_knows(children: list[Child]) -> None:
    children.append(Child(70))
    processes.end("m-1")
    children.pop(1)
    assert pids("m-0") == [1, 11, 70]


def test_the_dead_are_no_descendants_and_leaders_are_not_buried(
    children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    children += [Child(30, state=psutil.STATUS_ZOMBIE), Child(31)]
    children[1].state = children[2].state = psutil.STATUS_ZOMBIE
    buried: list[int] = []
    monkeypatch.setattr(os, "waitpid", lambda pid, _: buried.append(pid))
    processes.bury()
    assert buried == [30]
    assert pids("m-0") == [1, 11]


def test_only_who_started_a_run_learns_how_it_ended(children: list[Child], monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Child] = []

    def wait_procs(found: list[Child], timeout: float) -> tuple[list[Child], list[Child]]:
        waited.extend(found)
        return found, []

    monkeypatch.setattr(psutil, "wait_procs", wait_procs)
    processes._wait([children[0], children[1], children[2]], 1.0)  # type: ignore[list-item]
    assert [one.pid for one in waited] == [9]


def test_the_number_of_a_helper_that_is_gone_may_be_that_of_an_orphan(children: list[Child]) -> None:
    processes.end("m-1")
    children.pop(1)
    assert pids("m-0") == [1, 11]
    processes.forget(9)
    assert pids("m-0") == [1, 11, 9]
