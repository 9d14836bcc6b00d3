"""What a run shows without a hook decides if nothing else was recorded, and is compared along with it otherwise."""

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

from detaudit import advice
from detaudit.audit import Auditor
from detaudit.config.options import compiled
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.target import Target
from detaudit.model import Audit, Explanation, LikelyCause, Reason, Stage, Status, Verdict
from detaudit.model.problems import (
    ArtifactMissing,
    ArtifactsNotWritten,
    Failed,
    LogIncomplete,
    LossPatternUnmatched,
    OnlyLosses,
    RunUnusable,
)
from detaudit.model.warnings import ArtifactsSkipped
from tests.fakes import FakeLauncher, Script, hello, run, settings, training
from tests.logs import row

NOTHING = [hello(), {"k": "bye", "how": "exit"}]
LOSS = compiled(r"loss (\S+)")


def shows(
    lines: list[dict[str, Any]],
    *,
    out: str = "",
    exit_code: int = 0,
    files: dict[str, bytes] | None = None,
    **named: bytes,
) -> Script:
    """Return a run that records these lines, prints this and writes these files."""
    launched = run(lines, exit_code)

    def both(spec: RunSpec) -> RunOutcome:
        outcome = launched(spec)
        (spec.folder / "stdout.log").write_text(out)
        for name, data in {**(files or {}), **named}.items():
            (spec.cwd / name).write_bytes(data)
        return outcome

    return both


def audit(folder: Path, *scripts: Script, **options: Any) -> Audit:
    return Auditor(settings(folder, runs=len(scripts), **options), FakeLauncher(*scripts)).run()


def reason(result: Audit) -> Reason | None:
    return result.groups[0].reason


def test_identical_files_are_evidence_without_any_recorder(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows([], model=b"1")] * 3, artifacts=("model",))
    assert result.verdict is Verdict.DETERMINISTIC
    (rank,) = result.groups[0].runs[0].ranks
    assert (rank.framework, rank.sum_of_weights) == ("artifact", None)
    assert [(file.path, file.by) for file in result.groups[0].runs[0].artifacts] == [("model", "bytes")]
    assert result.groups[0].stages == (Stage.ARTIFACT,)


def test_a_file_that_differs_is_named(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, model=data, other=b"same") for data in (b"1", b"1", b"2")]
    result = audit(tmp_path, *scripts, artifacts=("model", "other"))
    assert result.verdict is Verdict.NONDETERMINISTIC
    found = result.groups[0].first_difference
    assert found is not None
    assert (found.runs, found.stage, found.site) == ((1, 3), Stage.ARTIFACT, "model: line 1")
    differing = result.groups[0].runs[2].first_difference
    assert differing is not None
    assert (differing.stage, differing.site) == (Stage.ARTIFACT, "model: line 1")


def test_a_tensor_that_differs_is_named(tmp_path: Path) -> None:
    def file(b: float) -> bytes:
        tensor = {"dtype": "F32", "shape": [1]}
        header = json.dumps({"a": {**tensor, "data_offsets": [0, 4]}, "b": {**tensor, "data_offsets": [4, 8]}})
        return struct.pack(f"<Q{len(header)}sff", len(header), header.encode(), 0.5, b)

    scripts = [shows(NOTHING, files={"model.safetensors": file(b)}) for b in (1, 2)]
    result = audit(tmp_path, *scripts, artifacts=("*.safetensors",))
    assert result.groups[0].first_difference is not None
    assert result.groups[0].first_difference.site == "model.safetensors: b"
    assert [r.ranks[0].sum_of_weights for r in result.groups[0].runs] == [1.5, 2.5]


def test_a_changing_set_of_files_is_a_difference(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, a=b"1", b=b"1"), shows(NOTHING, a=b"1")]
    result = audit(tmp_path, *scripts, artifacts=("[ab]",))
    assert result.verdict is Verdict.NONDETERMINISTIC
    assert ArtifactsSkipped(recipe="none", run=2, files=("b",)) in result.warnings


def test_a_file_that_a_run_did_not_write_is_no_record_of_it(tmp_path: Path) -> None:
    result = audit(tmp_path, shows(NOTHING, model=b"1"), shows(NOTHING), artifacts=("model",))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].runs[1].status is Status.NOT_RECORDED
    assert reason(result) == RunUnusable(run=2, errors=(ArtifactsNotWritten(files=("model",)),))


def test_a_missing_file_is_no_record_even_of_a_training_that_was_recorded(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training())] * 2, artifacts=("model",))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert reason(result) == RunUnusable(run=1, errors=(ArtifactMissing(pattern="model", folder=False),))


def test_all_that_is_missing_is_named(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training(), out="Loss 1\n")] * 2, loss_pattern=LOSS, artifacts=("a", "b"))
    unmatched = LossPatternUnmatched(pattern=LOSS.pattern, last_line="Loss 1")
    missing = (ArtifactMissing(pattern=name, folder=False) for name in "ab")
    assert reason(result) == RunUnusable(run=1, errors=(unmatched, *missing))


def test_an_error_of_a_failed_run_is_its_exit_status_and_not_that_its_file_is_missing(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training(), exit_code=1)] * 2, artifacts=("model",))
    assert result.groups[0].runs[0].status is Status.FAILED
    assert reason(result) == RunUnusable(run=1, errors=(Failed(exit_code=1),))


def test_a_half_written_file_of_a_run_that_failed_is_never_compared(tmp_path: Path) -> None:
    scripts = [shows([], model=data, exit_code=1) for data in (b"1", b"2")]
    assert audit(tmp_path, *scripts, artifacts=("model",)).verdict is Verdict.INCONCLUSIVE


def test_a_file_does_not_make_up_for_an_event_log_that_was_cut_off(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training(whole=False), model=b"1")] * 2, artifacts=("model",))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert reason(result) == RunUnusable(run=1, errors=(LogIncomplete(pid=7),))


def test_what_the_helper_of_an_unrecorded_target_trained_is_not_compared(tmp_path: Path) -> None:
    scripts = [shows([hello(argv=["helper.py"]), *training(end)[1:]], model=b"1") for end in "ab"]
    result = audit(tmp_path, *scripts, artifacts=("model",))
    assert result.verdict is Verdict.DETERMINISTIC
    assert [rank.framework for rank in result.groups[0].runs[0].ranks] == ["artifact"]


def test_printed_losses_that_differ_are_proof(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, out=f"loss 1\nloss {loss}\n") for loss in ("0.5", "0.25")]
    result = audit(tmp_path, *scripts, loss_pattern=LOSS)
    assert result.verdict is Verdict.NONDETERMINISTIC
    found = result.groups[0].first_difference
    assert found is not None
    assert (found.step, found.stage) == (2, Stage.STDOUT)
    assert found.explanation == Explanation(likely=(LikelyCause.NOT_RECORDED,))
    assert [r.ranks[0].final_loss for r in result.groups[0].runs] == [0.5, 0.25]


def test_printed_losses_that_match_are_no_evidence(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(NOTHING, out="loss 1\n")] * 3, loss_pattern=LOSS)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert reason(result) == OnlyLosses()


def test_one_printed_loss_more_is_a_difference(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, out="loss 1\n" * count) for count in (2, 3)]
    found = audit(tmp_path, *scripts, loss_pattern=LOSS).groups[0].first_difference
    assert found is not None
    assert (found.step, found.stage) == (3, Stage.STDOUT)


def test_a_pattern_that_never_matches_is_never_a_match(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training(), out="Loss 1\n")] * 3, loss_pattern=LOSS)
    assert result.verdict is Verdict.INCONCLUSIVE
    unmatched = LossPatternUnmatched(pattern=LOSS.pattern, last_line="Loss 1")
    assert reason(result) == RunUnusable(run=1, errors=(unmatched,))


def test_what_a_hook_recorded_is_named_before_what_was_printed(tmp_path: Path) -> None:
    scripts = [shows(training(end), out=f"loss {end}\n", model=end.encode()) for end in "12"]
    result = audit(tmp_path, *scripts, loss_pattern=LOSS, artifacts=("model",))
    found = result.groups[0].first_difference
    assert found is not None
    assert (found.rank, found.step, found.stage) == (0, 2, Stage.UPDATE)
    assert [rank.framework for rank in result.groups[0].runs[0].ranks] == ["torch", "stdout", "artifact"]


def test_a_file_that_differs_after_a_training_that_matches(tmp_path: Path) -> None:
    scripts = [shows(training(), out="loss 1\n", model=data) for data in (b"1", b"2")]
    result = audit(tmp_path, *scripts, loss_pattern=LOSS, artifacts=("model",))
    found = result.groups[0].first_difference
    assert found is not None
    assert found.stage is Stage.ARTIFACT
    matching = (Stage.FORWARD, Stage.UPDATE, Stage.STDOUT)
    assert found.site == "model: line 1"
    assert found.explanation == Explanation(matching=matching, likely=(LikelyCause.OUTSIDE_THE_WEIGHTS,))
    group = result.groups[0]
    assert group.stages == (Stage.FORWARD, Stage.UPDATE, Stage.STDOUT, Stage.ARTIFACT)
    assert [rank.framework for rank in group.runs[0].ranks] == ["torch", "stdout", "artifact"]
    assert [(file.path, file.by) for file in group.runs[0].artifacts] == [("model", "bytes")]


def test_a_training_whose_weights_were_not_recorded_is_decided_by_its_file(tmp_path: Path) -> None:
    event = row(1, "forward", "a", 0.5, fw="script")
    final = {"k": "final", "fw": "script", "steps": 1, "digest": "", "sum": "0x0p+0", "loss": None, "params": 0}
    lines = [hello(), event, {**final, "sparse": False, "devices": []}, {"k": "bye", "how": "exit"}]
    scripts = [shows(lines, model=b"1")] * 2
    for name, files, verdict in (("a", (), Verdict.INCONCLUSIVE), ("b", ("model",), Verdict.DETERMINISTIC)):
        (tmp_path / name).mkdir()
        assert audit(tmp_path / name, *scripts, artifacts=files).verdict is verdict


def test_next_commands_inherit_the_options(tmp_path: Path) -> None:
    requested = settings(
        tmp_path,
        loss_pattern=LOSS,
        artifacts=("a b.pt", "*.npz"),
        timeout=90.0,
        stages=("init", "update"),
        isolate=True,
        isolate_root="/repo",
    )
    assert advice.command(requested, "--runs", "3") == (
        r"detaudit run train.py --runs 3 --python python --timeout 90 --stages init,update --loss-pattern "
        r"'loss (\S+)' --artifact 'a b.pt' --artifact '*.npz' --isolate-root /repo"
    )
    plain = settings(tmp_path, isolate=True, fail_fast=True)
    assert advice.command(plain).endswith("--python python --fail-fast --isolate")
    shell = replace(requested, target=Target(arguments=("./train.sh",)))
    assert advice.command(shell).endswith("--isolate-root /repo -- ./train.sh")
    assert "--python" not in advice.command(shell)
