"""A whole check, with a fake launcher instead of real runs."""

from pathlib import Path
from typing import Any

from detaudit.auditor.baseline.lockfile import read_lock
from detaudit.auditor.check import Checker, CheckRequest
from detaudit.auditor.runs.observer import Observer
from detaudit.launch.slots import divide
from detaudit.model import Check, CheckVerdict, GateName, GateStatus, NextStep, Purpose
from detaudit.model.warnings import BaselineNotWritten
from detaudit.recipe.project import NamedAudit
from tests.auditor.fakes import FakeLauncher, run, settings, training

BISECT = NextStep(command="detaudit bisect train.py --python python", purpose=Purpose.BISECT, audit="train")
UPDATE = "detaudit check train --update"


def check(folder: Path, *ends: str, update: bool = False, **options: Any) -> Check:
    """Check one audit, whose runs end with these weights, against the lock file in ``folder``."""
    number = len(list(folder.glob("check*")))
    (inside := folder / f"check{number}").mkdir()
    request = CheckRequest("train", NamedAudit(command="train.py"), settings(inside, runs=len(ends), **options))
    launcher = FakeLauncher(*[run(training(end)) for end in ends])
    out, lock = inside / "results", folder / "detaudit.lock.json"
    return Checker([request], ("detaudit", "check"), out, lock, update, launcher, Observer()).run()


def statuses(found: Check) -> dict[GateName, GateStatus]:
    return {gate.name: gate.status for gate in found.audits[0].gates}


def test_without_a_baseline_one_is_suggested(tmp_path: Path) -> None:
    found = check(tmp_path, "a", "a")
    assert found.verdict is CheckVerdict.INCONCLUSIVE
    assert statuses(found) == {GateName.REPEATABLE: GateStatus.PASSED, GateName.BASELINE: GateStatus.INCONCLUSIVE}
    assert found.next_steps == (NextStep(command=UPDATE, purpose=Purpose.CREATE_BASELINE, audit="train"),)
    assert found.warnings == ()
    assert found.lock_changes == ()


def test_an_update_writes_the_baseline_that_later_runs_match(tmp_path: Path) -> None:
    found = check(tmp_path, "a", "a", update=True)
    (change,) = found.lock_changes
    assert (change.audit, change.old_ranks, [rank.digest for rank in change.new_ranks]) == ("train", (), ["a"])
    assert read_lock(tmp_path / "detaudit.lock.json")["train"].run.ranks == change.new_ranks
    found = check(tmp_path, "a", "a")
    assert (found.verdict, found.next_steps) == (CheckVerdict.PASSED, ())


def test_runs_at_once_give_a_baseline_of_the_cores_that_each_had(tmp_path: Path) -> None:
    at_once: dict[str, Any] = {"jobs": divide(2, (), 2, range(6)), "isolate": True, "env": {"OMP_NUM_THREADS": "1"}}
    found = check(tmp_path, "a", "a", **at_once)
    assert found.next_steps[0].command == "detaudit check train --jobs 2 --update"
    check(tmp_path, "a", "a", update=True, **at_once)
    assert read_lock(tmp_path / "detaudit.lock.json")["train"].environment["cpus"] == "3"


def test_after_a_regression_the_steps_are_compared_or_the_baseline_is_replaced(tmp_path: Path) -> None:
    check(tmp_path, "a", "a", update=True)
    found = check(tmp_path, "b", "b")
    assert found.verdict is CheckVerdict.FAILED
    assert statuses(found) == {GateName.REPEATABLE: GateStatus.PASSED, GateName.BASELINE: GateStatus.FAILED}
    compare = f"detaudit compare {tmp_path}/detaudit.lock.json#train {tmp_path}/check1/out"
    assert found.next_steps == (
        NextStep(command=compare, purpose=Purpose.COMPARE_STEPS, audit="train"),
        NextStep(command=UPDATE, purpose=Purpose.ACCEPT_BASELINE, audit="train"),
    )


def test_runs_that_differ_are_bisected_and_never_become_a_baseline(tmp_path: Path) -> None:
    found = check(tmp_path, "a", "b")
    assert found.verdict is CheckVerdict.FAILED
    assert statuses(found) == {GateName.REPEATABLE: GateStatus.FAILED, GateName.BASELINE: GateStatus.INCONCLUSIVE}
    assert found.next_steps == (BISECT,)
    found = check(tmp_path, "a", "b", update=True)
    assert found.next_steps == (BISECT,)
    assert found.warnings == (BaselineNotWritten(audit="train"),)
    assert not (tmp_path / "detaudit.lock.json").exists()
