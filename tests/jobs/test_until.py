"""What an audit says of runs that were ended after a step."""

from pathlib import Path
from typing import Any

import pytest

from detaudit import baseline, check
from detaudit.audit import Auditor
from detaudit.compare import compare
from detaudit.config.options import Until
from detaudit.config.project import NamedAudit
from detaudit.model import Audit, GateStatus, Status, Verdict
from detaudit.report import render
from tests.fakes import FakeLauncher, Script, run, settings, training
from tests.logs import hexed

SECOND = Until(step=2)


def audit(folder: Path, *scripts: Script, until: Until = SECOND, **options: Any) -> Audit:
    return Auditor(settings(folder, runs=len(scripts), until=until, **options), FakeLauncher(*scripts)).run()


def ended(update: str = "later", *, steps: int = 3) -> Script:
    """Return a run that was ended after so many steps."""
    return run(training(update, steps=steps, whole=False), ended=True)


def test_runs_match_through_the_step_however_far_they_got(tmp_path: Path) -> None:
    found = audit(tmp_path, ended("a"), ended("b"), ended("w2", steps=2))
    (group,) = found.groups
    assert (found.verdict, group.through, group.distinct_results) == (Verdict.DETERMINISTIC, 2, 1)
    assert [(one.status, one.steps, one.through, one.ranks[0].digest) for one in group.runs] == [
        (Status.ENDED, 2, 2, hexed("w2"))
    ] * 3


def test_runs_differ_before_the_step(tmp_path: Path) -> None:
    found = audit(tmp_path, ended(), ended("x", steps=2))
    assert found.verdict is Verdict.NONDETERMINISTIC
    assert found.groups[0].first_difference is not None
    assert found.groups[0].first_difference.step == 2


def test_a_run_that_did_the_step_counts_however_it_ended(tmp_path: Path) -> None:
    late = run(training("late", steps=4, whole=False), exit_code=1)
    found = audit(tmp_path, run(training("whole", steps=3)), late)
    assert found.verdict is Verdict.DETERMINISTIC
    assert {one.status for one in found.groups[0].runs} == {Status.ENDED}


def test_a_run_that_fails_before_the_step_is_inconclusive(tmp_path: Path) -> None:
    found = audit(tmp_path, ended(), run(training(steps=1, whole=False), exit_code=1))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.groups[0].runs[1].status is Status.FAILED


def test_runs_that_end_by_themselves_before_the_step_are_whole(tmp_path: Path) -> None:
    (group,) = audit(tmp_path, *[run(training())] * 2, until=Until(step=9)).groups
    assert (group.verdict, group.through) == (Verdict.DETERMINISTIC, None)
    assert "Nothing is known" not in render(audit_of(group, tmp_path), "table")


def audit_of(group: Any, folder: Path) -> Audit:
    """Return the audit that is kept in a folder, and has this group."""
    from detaudit import store

    found = store.load(folder / "out")
    assert found.groups == (group,)
    return found


def test_one_run_that_ends_before_the_step_has_fewer_steps(tmp_path: Path) -> None:
    (group,) = audit(tmp_path, ended(steps=4), run(training("w2")), until=Until(step=3)).groups
    assert group.verdict is Verdict.NONDETERMINISTIC
    assert group.first_difference is not None
    assert group.first_difference.stage == "steps"


def test_without_weights_nothing_is_proven(tmp_path: Path) -> None:
    lines = [line for line in training(steps=3, whole=False) if line.get("stage") != "update"]
    found = audit(tmp_path, *[run(lines, ended=True)] * 2)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_program_that_was_not_recorded_makes_it_inconclusive(tmp_path: Path) -> None:
    from detaudit.launch import Program

    unseen = Program(9, (1, 2), ("python", "-I", "x.py"), "torch", has_variables=True, has_path=True)
    lines = training(steps=3, whole=False)
    found = audit(tmp_path, *[run(lines, ended=True, programs=(unseen,))] * 2)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_the_first_run_sets_the_step(tmp_path: Path) -> None:
    (group,) = audit(tmp_path, ended("a", steps=3), ended("b", steps=7), until=Until(seconds=5)).groups
    assert group.through == 3
    assert [one.through for one in group.runs] == [3, 3]
    assert group.verdict is Verdict.NONDETERMINISTIC  # the weights of step 3 are a, and w3


def test_a_first_run_that_ends_before_the_time_is_whole(tmp_path: Path) -> None:
    (group,) = audit(tmp_path, *[run(training())] * 2, until=Until(seconds=5)).groups
    assert (group.verdict, group.through) == (Verdict.DETERMINISTIC, None)


@pytest.mark.parametrize("format_", ["table", "markdown", "github", "junit", "sarif", "gitlab"])
def test_no_report_says_more_than_was_compared(tmp_path: Path, format_: str) -> None:
    text = render(audit(tmp_path, ended(), ended()), format_)
    if format_ in ("table", "markdown", "junit"):
        assert "through step 2, where every run was ended" in text
        assert "Nothing is known of later steps" in text
    assert "final" not in text.lower().replace("finals", "")


def test_recordings_know_where_they_were_ended(tmp_path: Path) -> None:
    for name, scripts in (("short", [ended()] * 2), ("whole", [run(training("late", steps=5))] * 2)):
        (tmp_path / name).mkdir()
        audit(tmp_path / name, *scripts, until=Until(step=3 if name == "short" else 9))
    short, whole = (baseline.load(str(tmp_path / name / "out")) for name in ("short", "whole"))
    assert (short.recording.run.through, whole.recording.run.through) == (3, None)
    found = compare(short.recording, whole.recording, names=("A", "B"))
    assert found.first_difference is not None  # step 3 has the weights "later" and w3
    assert found.first_difference.step == 3


def test_a_baseline_that_was_ended_is_compared_through_its_step(tmp_path: Path) -> None:
    made: dict[str, Any] = {}
    for name, scripts, step in (("short", [ended("w2", steps=2)] * 2, 2), ("whole", [run(training(steps=5))] * 2, 9)):
        (tmp_path / name).mkdir()
        auditor = Auditor(settings(tmp_path / name, runs=2, until=Until(step=step)), FakeLauncher(*scripts))
        made[name] = (auditor.run().groups[0], auditor.recording)
    (_, then), (group, now) = made["short"], made["whole"]
    gate = check.same_as_baseline(NamedAudit(command="train.py"), group, now, then)
    assert gate.status is GateStatus.PASSED
    assert gate.detail.through == 2  # type: ignore[attr-defined]
    assert check.repeatable(made["short"][0]).detail.through == 2  # type: ignore[attr-defined]
