"""Bisections whose runs go at once, with a fake launcher: they see what runs one after another show."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit import store
from detaudit.bisect.flags import Bisector
from detaudit.errors import DetauditError
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.slots import Jobs, divide
from detaudit.model import Bisection, BisectOutcome, Group
from tests.bisect.test_flags import HASH, KERNEL, SEED, flags_of, question
from tests.fakes import run, training

TWO, THREE = divide(2, (), 16, range(4)), divide(3, (), 16, range(6))


@dataclass
class Oracle:
    """A launcher: what a run shows depends on its flags and its number alone.

    Without one of the ``needed`` flags, one run of ``rarity`` differs; with ``fails``, all fail.
    """

    needed: frozenset[str]
    rarity: int = 1
    fails: str = ""
    stop_at: tuple[str, int] = "", 0

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        number, flags = int(spec.folder.name), flags_of(spec)
        if (spec.folder.parent.name, number) == self.stop_at:
            raise KeyboardInterrupt
        time.sleep(0.002 * (number % 2))  # so that runs do not end in the order of their numbers
        tick()
        if self.fails in flags:
            return run(training(whole=False), exit_code=1, stderr="RuntimeError: no such kernel\n")(spec)
        shows = not self.needed <= flags and number % self.rarity == 0
        return run(training(f"other {number}" if shows else "same"))(spec)


def bisector(folder: Path, oracle: Oracle, jobs: Jobs, earlier: tuple[Group, ...] = ()) -> Bisector:
    asked = question(folder)
    return Bisector(
        replace(asked, settings=replace(asked.settings, jobs=jobs, isolate=jobs.apart)), oracle, None, earlier
    )


def bisect(folder: Path, oracle: Oracle, jobs: Jobs) -> Bisection:
    return bisector(folder, oracle, jobs).run()


def shown(audit: Bisection) -> object:
    """Return the answer, and each trial with its runs."""
    trials = [
        (group.recipe.name, {*group.recipe.flags}, [(one.id, one.status, one.first_difference) for one in group.runs])
        for group in audit.groups
    ]
    needed = [(one.flag, one.left_out) for one in audit.needed or ()]
    return audit.outcome, needed, audit.not_needed, audit.failing_flags, audit.evidence, audit.total_runs, trials


@pytest.mark.full
@settings(max_examples=12, deadline=None)
@given(
    st.frozensets(st.sampled_from([SEED, KERNEL, HASH, "no flag"])),
    st.sampled_from([1, 1, 2, 5]),
    st.sampled_from(["", "", KERNEL, HASH]),
)
def test_runs_at_once_give_the_answer_of_runs_one_after_another(
    needed: frozenset[str], rarity: int, fails: str
) -> None:
    oracle = Oracle(needed, rarity, fails)
    answers = []
    for jobs in (Jobs(), TWO, THREE):
        with TemporaryDirectory() as folder:
            answers.append(shown(bisect(Path(folder), oracle, jobs)))
    assert answers[1:] == answers[:1] * 2


def test_runs_that_are_needed_anyway_go_at_once(tmp_path: Path) -> None:
    class Meeting(Oracle):
        both = threading.Barrier(2)

        def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
            if spec.folder.parent.name == "trial-2" and spec.folder.name in ("1", "2"):
                self.both.wait(60)
            return super().launch(spec, tick)

    assert bisect(tmp_path, Meeting(frozenset([KERNEL])), TWO).outcome is BisectOutcome.FIXED


def test_a_run_that_was_not_asked_for_leaves_nothing(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Oracle(frozenset([KERNEL, HASH]), rarity=2), THREE)
    for group in audit.groups:
        folders = {entry.name for entry in (tmp_path / "out/runs" / group.recipe.name).iterdir()}
        assert folders == {str(one.id) for one in group.runs}


@pytest.mark.parametrize("stop_at", [("trial-1", 1), ("trial-1", 2), ("trial-2", 1), ("trial-2", 4), ("trial-2", 15)])
def test_an_interruption_ends_all_runs_and_is_resumed(tmp_path: Path, stop_at: tuple[str, int]) -> None:
    oracle = Oracle(frozenset([KERNEL]))
    stopped = bisector(tmp_path, replace(oracle, stop_at=stop_at), TWO)
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    assert threading.active_count() == 1
    store.save(tmp_path / "out", stopped.result(interrupted=True))
    earlier = store.load(tmp_path / "out")
    assert isinstance(earlier, Bisection)
    resumed = bisector(tmp_path, oracle, TWO, earlier.groups).run()
    assert [one.flag for one in resumed.needed or ()] == [KERNEL]
    assert resumed.total_runs == sum(len(group.runs) for group in resumed.groups)


def test_runs_at_once_that_hide_races_end_it_after_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    job = bisector(tmp_path, Oracle(frozenset()), divide(2, (), 16, range(2)))
    with pytest.raises(DetauditError, match=r"use --jobs 1") as raised:
        job.run()
    assert (raised.value.exit_code, job.result().total_runs) == (125, 1)
