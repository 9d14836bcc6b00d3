"""A whole check, with a fake launcher instead of real runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from detaudit.baseline import read_lock, write_lock
from detaudit.check import Checker, CheckRequest, flag_may_exist
from detaudit.config.project import NamedAudit
from detaudit.launch.slots import divide
from detaudit.model import Check, CheckVerdict, GateName, GateStatus, NextStep, Purpose, Source, SourceKind
from detaudit.model.warnings import BaselineNotWritten, BaselineWithoutAudit
from detaudit.runner import Observer
from tests.fakes import FakeLauncher, run, settings, training
from tests.logs import hexed

TRACE = NextStep(command="detaudit trace train.py --python python", purpose=Purpose.TRACE, audit="train")
BISECT = NextStep(command="detaudit bisect train.py --python python", purpose=Purpose.BISECT, audit="train")
UPDATE = "detaudit check train --update"


class Told(Observer):
    """Notes what the progress line knows of the last step, by audit."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] = []

    def audit_started(self, name: str) -> None:
        self.steps.append((name, 0))

    def last_step(self, step: int) -> None:
        self.steps[-1] = (self.steps[-1][0], step)


def check(folder: Path, *ends: str, update: bool = False, force: bool = False, **options: Any) -> Check:
    """Check one audit, whose runs end with these weights, against the lock file in ``folder``."""
    number = len(list(folder.glob("check*")))
    (inside := folder / f"check{number}").mkdir()
    recipes = options.pop("recipes", None)
    found = settings(inside, runs=len(ends), **options)
    found = replace(found, recipes=recipes) if recipes else found
    request = CheckRequest("train", NamedAudit(command="train.py"), found)
    launcher = FakeLauncher(*[run(training(end)) for end in ends])
    out, lock = inside / "results", folder / "detaudit.lock.json"
    return Checker([request], ("detaudit", "check"), out, lock, update, launcher, Observer(), force=force).run()


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
    assert (change.audit, change.old_ranks, [rank.digest for rank in change.new_ranks]) == ("train", (), [hexed("a")])
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


def test_runs_that_differ_are_traced_and_bisected_and_never_become_a_baseline(tmp_path: Path) -> None:
    found = check(tmp_path, "a", "b")
    assert found.verdict is CheckVerdict.FAILED
    assert statuses(found) == {GateName.REPEATABLE: GateStatus.FAILED, GateName.BASELINE: GateStatus.INCONCLUSIVE}
    assert found.next_steps == (TRACE, BISECT)
    found = check(tmp_path, "a", "b", update=True)
    assert found.next_steps == (TRACE, BISECT)
    assert found.warnings == (BaselineNotWritten(audit="train"),)
    assert not (tmp_path / "detaudit.lock.json").exists()


def test_a_bisection_is_offered_only_where_a_flag_may_help(tmp_path: Path) -> None:
    group = check(tmp_path, "a", "b").audits[0].audit.groups[0]

    def among(*kinds: SourceKind, call: str = "random.seed", suspect: bool = False) -> bool:
        lines = tuple(Source(file="train.py", line=1, kind=kind, call=call, suspect=suspect) for kind in kinds)
        return flag_may_exist(msgspec.structs.replace(group, sources=lines))

    assert among()
    assert among(SourceKind.UNSEEDED)
    assert among(SourceKind.CLOCK, SourceKind.UNSEEDED)
    assert among(SourceKind.CLOCK, suspect=True)
    assert not among(SourceKind.CLOCK)
    assert not among(SourceKind.PROCESS_ID, SourceKind.COMPLETION_ORDER, call="concurrent.futures.as_completed")
    assert among(SourceKind.COMPLETION_ORDER_OPTION, call="DataLoader(in_order=False)")


def test_a_trace_has_the_recipe_of_the_audit_and_its_files(tmp_path: Path) -> None:
    request = settings(tmp_path, "seeds", runs=2)
    recipe = msgspec.structs.replace(request.recipes[0], options=("--recipe", "seeds"))
    found = check(tmp_path, "a", "b", recipes=(recipe,))
    assert found.next_steps[0].command == "detaudit trace train.py --recipe seeds --python python"
    group = found.audits[0].audit.groups[0]
    one = CheckRequest("train", NamedAudit(command="train.py"), replace(request, artifacts=("model.pt",)))
    checker = Checker([one], (), tmp_path / "out", tmp_path / "lock", False, FakeLauncher(), Observer())
    traced, bisected = checker._after_difference(one, group)
    assert (traced.purpose, bisected.purpose) == (Purpose.TRACE, Purpose.BISECT)
    assert "--artifact model.pt" in traced.command


def test_a_baseline_that_no_audit_has_is_named(tmp_path: Path) -> None:
    check(tmp_path, "a", "a", update=True)
    lock = tmp_path / "detaudit.lock.json"
    write_lock(lock, {**read_lock(lock), "renamed": read_lock(lock)["train"]})
    found = check(tmp_path, "a", "a")
    assert (found.verdict, found.warnings) == (CheckVerdict.PASSED, (BaselineWithoutAudit(audit="renamed"),))


def test_the_steps_of_an_audit_are_known_from_its_own_baseline(tmp_path: Path) -> None:
    lock = tmp_path / "detaudit.lock.json"

    def steps(update: bool, *names: str) -> list[tuple[str, int]]:
        (folder := tmp_path / f"{'-'.join(names)}{update}").mkdir()
        requests, told = [], Told()
        for name in names:
            (inside := folder / name).mkdir()
            requests.append(CheckRequest(name, NamedAudit(command="train.py"), settings(inside, runs=2)))
        launcher = FakeLauncher(*[run(training(steps=len(name))) for name in names for _ in "12"])
        Checker(requests, ("detaudit", "check"), folder / "results", lock, update, launcher, told).run()
        return told.steps

    steps(True, "long", "medium")
    assert steps(False, "new", "medium", "long") == [("new", 0), ("medium", 6), ("long", 4)]
