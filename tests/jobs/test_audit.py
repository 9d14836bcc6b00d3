"""A whole audit, with a fake launcher instead of real runs."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from detaudit import store, wire
from detaudit.audit import Auditor
from detaudit.errors import AuditNotFoundError, StorageError, UsageError
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import Audit, FlagOutcome, Purpose, Run, SourceKind, Stage, Status, Verdict
from detaudit.model.outputs import Compare
from detaudit.model.problems import (
    Failed,
    LogIncomplete,
    NoTraining,
    OnlyLosses,
    RecorderMismatch,
    RecorderNotLoaded,
    RunUnusable,
)
from detaudit.model.sources import AddressesRandom, RefusedInProcess
from detaudit.model.warnings import AuditStopped, FlagNotApplied
from detaudit.report import groups
from detaudit.runner import Observer
from tests.fakes import FakeLauncher, Script, hello, run, settings, training
from tests.logs import row


def audit(folder: Path, *scripts: Script, recipes: tuple[str, ...] = (), runs: int = 3) -> Audit:
    return Auditor(settings(folder, *recipes, runs=runs), FakeLauncher(*scripts)).run()


def test_equal_runs(tmp_path: Path) -> None:
    result = audit(tmp_path, *[run(training())] * 3)
    assert result.verdict is Verdict.DETERMINISTIC
    (group,) = result.groups
    assert group.distinct_results == 1
    assert group.confidence is not None
    assert group.first_difference is None
    assert group.runs[0].ranks[0].sum_of_weights == 3.0


def test_a_run_that_differs(tmp_path: Path) -> None:
    result = audit(tmp_path, run(training()), run(training()), run(training("other")))
    assert result.verdict is Verdict.NONDETERMINISTIC
    found = result.groups[0].first_difference
    assert found is not None
    assert (found.runs, found.step, found.stage) == ((1, 3), 2, Stage.UPDATE)
    assert "--recipe all" in result.next_steps[0].command
    assert [step.purpose for step in result.next_steps] == [
        Purpose.TRY_RECIPES,
        Purpose.BISECT,
        Purpose.TRACE,
        Purpose.FIX,
        Purpose.PRINT_AGAIN,
    ]


def test_an_audit_says_when_it_ran_and_which_runs_have_the_same_result(tmp_path: Path) -> None:
    scripts = [run(training(one)) for one in ("a", "b", "a", "c", "b")]
    result = audit(tmp_path, *scripts, run([], exit_code=1), runs=6)
    assert datetime.fromisoformat(result.started) <= datetime.fromisoformat(result.ended)
    (group,) = result.groups
    assert group.planned_runs == 6
    assert [one.result for one in group.runs] == [1, 2, 1, 3, 2, 4]


def test_an_audit_that_was_interrupted_says_how_many_runs_were_planned(tmp_path: Path) -> None:
    def interrupted(spec: RunSpec) -> RunOutcome:
        raise KeyboardInterrupt

    auditor = Auditor(settings(tmp_path, runs=5), FakeLauncher(run(training()), interrupted))
    with pytest.raises(KeyboardInterrupt):
        auditor.run()
    (group,) = auditor.result(interrupted=True).groups
    assert (len(group.runs), group.planned_runs) == (2, 5)


def test_a_trace_is_suggested_without_the_stages_that_it_does_not_take(tmp_path: Path) -> None:
    requested = settings(tmp_path, runs=2, stages=("init", "update"))
    result = Auditor(requested, FakeLauncher(run(training()), run(training("other")))).run()
    by_verb = {step.command.split()[1]: step.command for step in result.next_steps}
    assert "--stages init,update" in by_verb["run"]
    assert by_verb["trace"] == "detaudit trace train.py --python python"


def test_a_failed_run_is_compared_by_its_exit_status_alone(tmp_path: Path) -> None:
    result = audit(tmp_path, run(training("other"), exit_code=1, stderr="boom\n"), run(training()), run(training()))
    assert result.verdict is Verdict.NONDETERMINISTIC
    first = result.groups[0].first_difference
    assert first is not None
    assert (first.runs, first.stage) == ((1, 2), Stage.EXIT)
    assert [one.result for one in result.groups[0].runs] == [1, 2, 2]
    assert result.groups[0].runs[0].stderr_tail == ("boom",)
    assert result.groups[0].runs[0].errors == (Failed(exit_code=1),)
    assert result.groups[0].runs[0].first_difference is None
    assert first.explanation.matching == ()  # the run failed: what it trained was not compared
    assert "the trainings match" not in groups.verdict_sentence(result.groups[0])


def test_the_training_alone_says_nothing_about_a_failed_run(tmp_path: Path) -> None:
    scripts = run(training(), exit_code=1), run(training()), run(training())
    result = Auditor(settings(tmp_path, runs=3, compare=Compare.TRAINING), FakeLauncher(*scripts)).run()
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].reason == RunUnusable(run=1, errors=(Failed(exit_code=1),))
    assert not result.groups[0].outputs_compared


def test_runs_that_fail_alike_prove_nothing(tmp_path: Path) -> None:
    result = audit(tmp_path, *[run(training(), exit_code=1, stderr="boom\n")] * 2)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].reason == RunUnusable(run=1, errors=(Failed(exit_code=1),))
    assert (result.next_steps[0].purpose, result.next_steps[0].run) == (Purpose.READ_STDERR, 1)
    assert result.next_steps[0].command == f"less {tmp_path}/out/runs/none/1/stderr.log"


def test_an_event_log_without_an_end_is_never_a_match(tmp_path: Path) -> None:
    result = audit(tmp_path, run(training()), run(training(whole=False)), run(training()))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].runs[1].status is Status.NOT_RECORDED
    assert result.groups[0].runs[1].errors == (LogIncomplete(pid=7),)
    assert result.groups[0].reason == RunUnusable(run=2, errors=(LogIncomplete(pid=7),))


@pytest.mark.parametrize("child", [b"", b'{"k":"hello","schema":2,"pi', json.dumps(hello(pid=8)).encode()])
def test_a_child_whose_event_log_is_cut_off_alike_in_all_runs_is_no_match(child: bytes, tmp_path: Path) -> None:
    def with_child(spec: RunSpec) -> RunOutcome:
        outcome = run(training())(spec)
        (spec.folder / "logs" / "8.0.jsonl").write_bytes(child)
        return outcome

    result = audit(tmp_path, *[with_child] * 3)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].reason == RunUnusable(run=1, errors=(LogIncomplete(pid=8),))


def test_a_process_that_was_killed_after_its_training_is_no_record(tmp_path: Path) -> None:
    result = audit(tmp_path, *[run(training()[:-1])] * 3)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].reason == RunUnusable(run=1, errors=(LogIncomplete(pid=7),))


def test_nothing_recorded_is_never_a_match(tmp_path: Path) -> None:
    result = audit(tmp_path, *[run([hello(), {"k": "bye", "how": "exit"}])] * 3)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].distinct_results == 0
    assert result.groups[0].reason == RunUnusable(run=1, errors=(NoTraining(imported=()),))


def test_the_recorded_grandchild_of_an_unrecorded_target_is_no_record(tmp_path: Path) -> None:
    lines = [hello(argv=["python", "helper.py"]), *training()[1:]]
    result = audit(tmp_path, *[run(lines)] * 3)
    assert result.groups[0].runs[0].status is Status.NOT_RECORDED
    assert result.groups[0].runs[0].errors == (RecorderNotLoaded(program="train.py"),)
    assert result.groups[0].runs[0].ranks == ()


def test_the_recorder_of_another_version_is_never_compared(tmp_path: Path) -> None:
    other = [run([hello(schema=99), *training()[1:]])] * 3
    result = audit(tmp_path, *other)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].runs[0].errors == (RecorderMismatch(program="train.py", schema=99),)


def test_every_run_of_a_group_gets_the_same_environment(tmp_path: Path) -> None:
    launcher = FakeLauncher(*[run(training())] * 4)
    Auditor(settings(tmp_path, "none", "seeds", runs=2), launcher).run()
    first, second, third, _ = launcher.specs
    assert first.env == second.env
    assert first.argv == second.argv == third.argv
    assert "PYTHONHASHSEED" in third.env
    assert third.env[wire.ENV_FLAGS].count("\n") == 3


def test_the_users_pythonpath_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    launcher = FakeLauncher(*[run(training())] * 2)
    Auditor(settings(tmp_path, runs=2), launcher).run()
    assert launcher.specs[0].env["PYTHONPATH"].endswith("recorder/bootstrap:/theirs")


def test_flags_that_failed_or_whose_module_was_not_imported_are_reported(tmp_path: Path) -> None:
    flag = {"k": "flag", "id": "torch-seed", "state": "failed", "detail": "AttributeError: no manual_seed"}
    lines = [*training()[:1], flag, *training()[1:]]
    result = audit(tmp_path, *[run(lines)] * 3, recipes=("seeds",))
    states = {state.id: state.state for state in result.groups[0].flags}
    assert states["torch-seed"] is FlagOutcome.FAILED
    assert states["tensorflow-seed"] is FlagOutcome.NOT_IMPORTED
    assert states["python-hash-seed"] is FlagOutcome.APPLIED
    failed = FlagNotApplied(
        recipe="seeds", flag="torch-seed", reason=RefusedInProcess(detail="AttributeError: no manual_seed")
    )
    assert failed in result.warnings


def test_what_finished_is_kept_on_disk_after_every_run(tmp_path: Path) -> None:
    def interrupted(spec: RunSpec) -> RunOutcome:
        raise KeyboardInterrupt

    auditor = Auditor(settings(tmp_path), FakeLauncher(run(training()), run(training()), interrupted))
    with pytest.raises(KeyboardInterrupt):
        auditor.run()
    assert len(store.load(tmp_path / "out").groups[0].runs) == 2
    kept = auditor.result(interrupted=True)
    assert kept.interrupted
    assert [r.status for r in kept.groups[0].runs] == [Status.OK, Status.OK, Status.STOPPED]
    assert not any("less " in step.command for step in kept.next_steps)
    assert kept.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("update", "verdict"), [("b", Verdict.NONDETERMINISTIC), ("w2", Verdict.INCONCLUSIVE)])
def test_a_run_that_is_interrupted_counts_if_it_differs_already(update: str, verdict: Verdict, tmp_path: Path) -> None:
    def interrupted(spec: RunSpec) -> RunOutcome:
        run(training(update, steps=2, whole=False))(spec)
        raise KeyboardInterrupt

    auditor = Auditor(settings(tmp_path), FakeLauncher(run(training(steps=4)), interrupted))
    with pytest.raises(KeyboardInterrupt):
        auditor.run()
    audit = auditor.result(interrupted=True)
    assert audit.verdict is verdict
    assert audit.interrupted


def test_a_disk_that_fills_up_stops_the_audit_and_keeps_what_finished(tmp_path: Path) -> None:
    def full(spec: RunSpec) -> RunOutcome:
        raise StorageError("cannot write: No space left on device", "Free space.")

    result = audit(tmp_path, run(training()), full)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert len(result.groups[0].runs) == 1
    assert AuditStopped(message="cannot write: No space left on device", hint="Free space.") in result.warnings


def test_two_different_runs_are_proof_even_after_the_disk_filled_up(tmp_path: Path) -> None:
    def full(spec: RunSpec) -> RunOutcome:
        raise StorageError("cannot write", "")

    assert audit(tmp_path, run(training()), run(training("x")), full).verdict is Verdict.NONDETERMINISTIC


def test_an_observer_is_called_at_every_event(tmp_path: Path) -> None:
    heard: list[str] = []

    class Recording(Observer):
        def group_started(self, recipe: str, runs: int) -> None:
            heard.append(f"{recipe} {runs}")

        def run_started(self, number: int, timeout: float | None) -> None:
            heard.append(f"start {number}")

        def run_finished(self, run: Run) -> None:
            heard.append(f"end {run.id} {run.status}")

    Auditor(settings(tmp_path, runs=2), FakeLauncher(*[run(training())] * 2), Recording()).run()
    assert heard == ["none 2", "start 1", "end 1 ok", "start 2", "end 2 ok"]


def test_an_audit_reads_back_as_it_was_written(tmp_path: Path) -> None:
    result = audit(tmp_path, *[run(training())] * 3)
    assert store.load(tmp_path / "out") == result


def test_files_that_are_not_an_audit(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    version = '"schema_version": "1.0"'
    bodies = ("", "[]", "{}", '{"schema_version": 1}', '{"schema_version": "9.0"}', f"{{{version}}}")
    for text in (*bodies, f'{{"kind": "run", {version}}}', f'{{"kind": "compare", {version}}}'):
        path.write_text(text)
        with pytest.raises(AuditNotFoundError):
            store.load(tmp_path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    store.write(path, b"old")
    (tmp_path / "audit.json.part").mkdir()
    with pytest.raises(StorageError):
        store.write(path, b"new")
    assert path.read_bytes() == b"old"


def test_addresses_that_the_system_does_not_pin_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.launch.refusals.aslr_refusal", lambda: "the system does not permit it")
    launcher = FakeLauncher(*[run(training())] * 2)
    result = Auditor(settings(tmp_path, "all", runs=2), launcher).run()
    assert not any(spec.no_aslr for spec in launcher.specs)
    assert {s.id: s.state for s in result.groups[0].flags}["system-aslr-off"] is FlagOutcome.UNAVAILABLE
    refused = FlagNotApplied(
        recipe="all", flag="system-aslr-off", reason=AddressesRandom(detail="the system does not permit it")
    )
    assert refused in result.warnings


def test_a_results_folder_is_never_overwritten(tmp_path: Path) -> None:
    audit(tmp_path, *[run(training())] * 3)
    with pytest.raises(UsageError, match="is not empty"):
        audit(tmp_path, *[run(training())] * 3)


def losses_only(digest: str) -> list[dict[str, object]]:
    event = row(1, "forward", digest, 0.5, fw="script")
    final = {
        "k": "final",
        "fw": "script",
        "steps": 1,
        "digest": "",
        "sum": "0x0p+0",
        "loss": "0x1p-1",
        "params": 0,
        "sparse": False,
    }
    return [hello(), event, {**final, "devices": []}, {"k": "bye", "how": "exit"}]


def test_matching_losses_alone_are_no_evidence(tmp_path: Path) -> None:
    result = audit(tmp_path, *[run(losses_only("a"))] * 3)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].reason == OnlyLosses()
    assert result.groups[0].runs[0].ranks[0].sum_of_weights is None


def test_different_losses_alone_are_proof(tmp_path: Path) -> None:
    result = audit(tmp_path, run(losses_only("a")), run(losses_only("b")), run(losses_only("a")))
    assert result.verdict is Verdict.NONDETERMINISTIC


@pytest.mark.parametrize(("of_model", "named"), [(True, []), (False, [SourceKind.HASH])])
def test_where_all_that_goes_in_matches_the_code_names_no_line_unless_a_fit_is_given_a_number(
    tmp_path: Path, of_model: bool, named: list[SourceKind]
) -> None:
    asked = settings(tmp_path, runs=2)
    (asked.cwd / "train.py").write_text("model.fit(x, seed=hash(name))\n")
    read = {"k": "settings", "values": {}, "environ": {}, "files": [str(asked.cwd / "train.py")], "versions": {}}

    def recorded(update: str) -> Script:
        begin, framework, *lines = training(update)
        batch = [row(1, "batch", "x")]
        kept = lines if of_model else [line for line in lines if line.get("stage") != "forward"]
        return run([begin, framework, read, *batch, *kept])

    (group,) = Auditor(asked, FakeLauncher(recorded("a"), recorded("b")), Observer()).run().groups
    assert group.first_difference is not None
    assert group.first_difference.stage is Stage.UPDATE
    assert [source.kind for source in group.sources] == named
