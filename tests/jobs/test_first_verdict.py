"""What an audit says whose runs go further one after another."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from detaudit import baseline
from detaudit.audit import Auditor
from detaudit.launch import RESULTS, EnoughError, RunOutcome, RunSpec
from detaudit.model import Audit, Stage, Status, Verdict
from detaudit.model.problems import OutputsOpen
from detaudit.report import render
from detaudit.runner import Observer
from tests.fakes import FakeLauncher, Script, run, settings, training
from tests.logs import Writer
from tests.words import same

WHOLE = run(training("end", steps=99))


class Notes(Observer):
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int | None]] = []

    def differs(self, step: int) -> None:
        self.found.append(("differs", step))

    def runs_planned(self, runs: int, least: bool) -> None:
        self.found.append(("at least" if least else "runs", runs))


def audit(folder: Path, *scripts: Script, runs: int = 2, notes: Observer | None = None, **options: Any) -> Audit:
    chosen = settings(folder, runs=runs, stepwise=True, **options)
    return Auditor(chosen, FakeLauncher(*scripts), notes).run()


def ended(steps: int, update: str = "") -> Script:
    """Return a run that was ended after so many steps."""
    return run(training(update or f"w{steps}", steps=steps, whole=False), ended=True)


def differing(at: int, steps: int) -> Script:
    """Return a run that was ended after so many steps, and differs at one of them only."""
    lines = training(f"w{steps}", steps=steps, whole=False)
    return run([{**line, "digest": "x"} if line.get("digest") == f"w{at}" else line for line in lines], ended=True)


def test_runs_that_match_go_to_their_ends(tmp_path: Path) -> None:
    notes = Notes()
    found = audit(tmp_path, ended(1), ended(64), WHOLE, WHOLE, notes=notes)
    (group,) = found.groups
    assert (found.verdict, group.through, group.compared) == (Verdict.DETERMINISTIC, None, 2)
    assert [run.through for run in group.runs] == [1, 64, None, None]
    assert group.confidence is not None
    assert notes.found == [("at least", 2), ("at least", 3), ("runs", 4), ("runs", 4)]
    text = render(found, "markdown")
    assert f"**deterministic**: {same()}" in text
    assert "Ended early: run 1 after step 1, run 2 after step 64" in text
    assert "2 runs would catch" in text


def test_an_earlier_audit_of_the_command_says_how_long_the_training_is(tmp_path: Path) -> None:
    """Then no run goes beyond a sixteenth of it before the whole ones. One of other arguments says nothing."""
    for name, arguments, further in (("one", (), 64), ("two", ("--lr", "1"), 64), ("three", (), 7)):
        chosen = settings(tmp_path, runs=2, stepwise=True)
        target, out = replace(chosen.target, arguments=arguments), tmp_path / "cwd" / RESULTS / name
        launcher = FakeLauncher(ended(1), ended(further), WHOLE, WHOLE)
        (group,) = Auditor(replace(chosen, target=target, out=out), launcher).run().groups
        assert [run.through for run in group.runs] == [1, further, None, None]


def test_the_first_recipe_says_how_long_the_training_is(tmp_path: Path) -> None:
    launcher = FakeLauncher(ended(1), ended(64), WHOLE, WHOLE, ended(1), ended(7), WHOLE, WHOLE)
    chosen = settings(tmp_path, "none", "seeds", runs=2, stepwise=True)
    _, second = Auditor(chosen, launcher).run().groups
    assert [run.through for run in second.runs] == [1, 7, None, None]


def test_the_table_has_no_results_of_shorter_runs(tmp_path: Path) -> None:
    text = render(audit(tmp_path, ended(1), ended(64), WHOLE, WHOLE), "markdown")
    rows = [line.split() for line in text.splitlines() if line.startswith("| ")]
    assert ["|", "1", "|", "-", "|", "-", "|", "1", "|", "1.5", "s", "|", "-", "|", "(ended)", "|"] in rows


def test_too_few_whole_runs_are_inconclusive(tmp_path: Path) -> None:
    def interrupted(_: RunSpec) -> RunOutcome:
        raise KeyboardInterrupt

    auditor = Auditor(settings(tmp_path, runs=3, stepwise=True), FakeLauncher(ended(1), ended(64), WHOLE, interrupted))
    with pytest.raises(KeyboardInterrupt):
        auditor.run()
    (group,) = auditor.result(interrupted=True).groups
    assert group.verdict is Verdict.INCONCLUSIVE


def test_what_nobody_can_decide_is_named_also_where_a_run_was_ended(tmp_path: Path) -> None:
    def saving(text: str) -> Script:
        def launched(spec: RunSpec) -> RunOutcome:
            (spec.cwd / "out.json").write_text(text)
            return WHOLE(spec)

        return launched

    (group,) = audit(tmp_path, ended(1), ended(64), saving('{"rss": 1.25}'), saving('{"rss": 1.26}')).groups
    assert group.verdict is Verdict.INCONCLUSIVE
    assert isinstance(group.reason, OutputsOpen)


def test_a_run_that_fails_is_one_of_those_wanted(tmp_path: Path) -> None:
    failed = run(training("w1", steps=1, whole=False), exit_code=1)
    (group,) = audit(tmp_path, ended(1), failed, ended(64), WHOLE, WHOLE, runs=3).groups
    assert (group.verdict, group.compared) == (Verdict.NONDETERMINISTIC, 3)


def test_a_run_that_fails_before_the_first_was_ended_differs_by_its_exit_status(tmp_path: Path) -> None:
    failed = run(training("w2", steps=2), exit_code=1)
    (group,) = audit(tmp_path, ended(5), failed, WHOLE, WHOLE).groups
    assert [run.status for run in group.runs] == [Status.ENDED, Status.FAILED, Status.OK]
    assert group.verdict is Verdict.NONDETERMINISTIC
    difference = group.first_difference
    assert difference is not None
    assert (difference.runs, difference.difference.stage) == ((2, 3), Stage.EXIT)


def test_a_run_that_ends_before_the_first_was_ended_differs_by_its_steps(tmp_path: Path) -> None:
    found = audit(tmp_path, ended(5), run(training("w5", steps=2)), ended(5))
    (group,) = found.groups
    assert [run.status for run in group.runs] == [Status.ENDED, Status.OK]
    assert group.verdict is Verdict.NONDETERMINISTIC
    assert "Ended early: run 1 after step 5" in render(found, "markdown")


def test_once_two_differ_all_end_where_the_first_did(tmp_path: Path) -> None:
    notes = Notes()
    found = audit(tmp_path, ended(1), ended(64), differing(3, 99), ended(64), ended(64, "y"), runs=4, notes=notes)
    (group,) = found.groups
    assert found.verdict is Verdict.NONDETERMINISTIC
    # The launcher of this test writes a log at once, so that it is not followed, but compared when it has ended.
    assert [run.through for run in group.runs] == [1, 64, 64, 64, 64]
    assert {run.status for run in group.runs} == {Status.ENDED}
    assert (group.distinct_results, group.compared) == (3, 4)
    assert ("differs", 3) in notes.found
    assert "Ended early: run 1 after step 1, the others after step 64" in render(found, "markdown")


def test_a_whole_run_that_differs_counts_as_far_as_the_others(tmp_path: Path) -> None:
    (group,) = audit(tmp_path, ended(2), run(training("end", steps=1)), ended(2)).groups
    assert group.verdict is Verdict.NONDETERMINISTIC
    assert group.distinct_results == 2


def test_a_run_that_goes_on_is_ended_where_the_one_it_differs_from_was(tmp_path: Path) -> None:
    class Following(FakeLauncher):
        """Writes the logs of the second run while it goes on."""

        def launch(self, spec: RunSpec, tick: Any) -> RunOutcome:
            if len(self.specs) != 1:
                return super().launch(spec, tick)
            self.specs.append(spec)
            log = spec.live / "logs" / "7.0.jsonl"
            log.parent.mkdir(parents=True)
            writer = Writer(log)
            try:
                for line in training("other", steps=9, whole=False):
                    writer.write(line)
                    tick()
            except EnoughError:
                assert ("differs", 4) in notes.found, "it is said while the run goes on"
                spec.live.rename(spec.folder)
                return RunOutcome(None, 1.0, ended=True)
            raise AssertionError("was not ended")

    chosen = settings(tmp_path, runs=2, stepwise=True)
    notes = Notes()
    found = Auditor(chosen, Following(ended(4, "x")), notes).run()
    (group,) = found.groups
    assert group.verdict is Verdict.NONDETERMINISTIC
    assert [run.through for run in group.runs] == [4, 4]
    assert ("differs", 4) in notes.found


def test_fail_fast_ends_a_run_at_its_difference(tmp_path: Path) -> None:
    (group,) = audit(tmp_path, ended(1), differing(1, 64), runs=4, fail_fast=True).groups
    assert len(group.runs) == 2
    assert group.verdict is Verdict.NONDETERMINISTIC


def test_a_comparison_takes_a_whole_run(tmp_path: Path) -> None:
    audit(tmp_path, ended(1), ended(64), WHOLE, WHOLE)
    loaded = baseline.load(str(tmp_path / "out"))
    assert loaded.recording.run.through is None
