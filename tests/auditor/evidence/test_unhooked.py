"""What a run shows without a hook decides where nothing else was recorded, and is compared beside it elsewhere."""

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from detaudit.auditor import advice
from detaudit.auditor.audit import Auditor
from detaudit.auditor.evidence import printed
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.target import Target
from detaudit.model import Audit, Stage, Status, Verdict
from detaudit.report import render
from tests.auditor.fakes import FakeLauncher, Script, hello, run, settings, training

NOTHING = [hello(), {"k": "bye", "how": "exit"}]
LOSS = printed.compiled(r"loss (\S+)")


def shows(
    lines: list[dict[str, Any]],
    *,
    out: str = "",
    exit_code: int = 0,
    files: dict[str, bytes] | None = None,
    **named: bytes,
) -> Script:
    """Return a run that leaves these lines, prints this and writes these files."""
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


def reason(result: Audit) -> str:
    return result.groups[0].reason or ""


def test_equal_files_are_evidence_without_any_recorder(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows([], model=b"1")] * 3, artifacts=("model",))
    assert result.verdict is Verdict.DETERMINISTIC
    (rank,) = result.groups[0].runs[0].ranks
    assert (rank.framework, rank.sum_of_weights) == ("artifact", None)
    assert [(file.path, file.by) for file in result.groups[0].runs[0].artifacts] == [("model", "bytes")]
    text = click.unstyle(render(result, "table"))
    assert "compared: weights from model (bytes); not recorded: init, rng, batch, forward, backward, update" in text


def test_a_file_that_differs_is_named(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, model=data, other=b"same") for data in (b"1", b"1", b"2")]
    result = audit(tmp_path, *scripts, artifacts=("model", "other"))
    assert result.verdict is Verdict.NONDETERMINISTIC
    found = result.groups[0].divergence
    assert found is not None
    assert (found.runs, found.stage, found.site) == ((1, 3), Stage.ARTIFACT, "model")
    assert "run 1: model" in click.unstyle(render(result, "table"))


def test_a_tensor_that_differs_is_named(tmp_path: Path) -> None:
    def file(b: float) -> bytes:
        tensor = {"dtype": "F32", "shape": [1]}
        header = json.dumps({"a": {**tensor, "data_offsets": [0, 4]}, "b": {**tensor, "data_offsets": [4, 8]}})
        return struct.pack(f"<Q{len(header)}sff", len(header), header.encode(), 0.5, b)

    scripts = [shows(NOTHING, files={"model.safetensors": file(b)}) for b in (1, 2)]
    result = audit(tmp_path, *scripts, artifacts=("*.safetensors",))
    assert result.groups[0].divergence is not None
    assert result.groups[0].divergence.site == "model.safetensors: b"
    assert [r.ranks[0].sum_of_weights for r in result.groups[0].runs] == [1.5, 2.5]


def test_a_changing_set_of_files_is_a_difference(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, a=b"1", b=b"1"), shows(NOTHING, a=b"1")]
    result = audit(tmp_path, *scripts, artifacts=("[ab]",))
    assert result.verdict is Verdict.NONDETERMINISTIC
    assert any("left out, because this run did not write it: b" in warning for warning in result.warnings)


def test_a_file_that_a_run_did_not_write_is_no_record_of_it(tmp_path: Path) -> None:
    result = audit(tmp_path, shows(NOTHING, model=b"1"), shows(NOTHING), artifacts=("model",))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.groups[0].runs[1].status is Status.NO_RECORD
    assert reason(result) == "run 2: model: not written by this run, it stood there before"


def test_a_missing_file_is_no_record_even_of_a_training_that_was_seen(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training())] * 2, artifacts=("model",))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "--artifact model: the run left no such file" in reason(result)


def test_a_run_that_failed_says_so_and_not_that_its_file_is_missing(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training(), exit_code=1)] * 2, artifacts=("model",))
    assert result.groups[0].runs[0].status is Status.FAILED
    assert "exit status 1" in reason(result)


def test_a_half_written_file_of_a_run_that_failed_is_never_compared(tmp_path: Path) -> None:
    scripts = [shows([], model=data, exit_code=1) for data in (b"1", b"2")]
    assert audit(tmp_path, *scripts, artifacts=("model",)).verdict is Verdict.INCONCLUSIVE


def test_a_record_that_was_cut_off_is_not_mended_by_a_file(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training(whole=False), model=b"1")] * 2, artifacts=("model",))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "cut off" in reason(result)


def test_what_the_helper_of_an_unrecorded_target_trained_is_not_compared(tmp_path: Path) -> None:
    scripts = [shows([hello(argv=["helper.py"]), *training(end)[1:]], model=b"1") for end in "ab"]
    result = audit(tmp_path, *scripts, artifacts=("model",))
    assert result.verdict is Verdict.DETERMINISTIC
    assert [rank.framework for rank in result.groups[0].runs[0].ranks] == ["artifact"]


def test_printed_losses_that_differ_are_a_fact(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, out=f"loss 1\nloss {loss}\n") for loss in ("0.5", "0.25")]
    result = audit(tmp_path, *scripts, loss_pattern=LOSS)
    assert result.verdict is Verdict.NONDETERMINISTIC
    found = result.groups[0].divergence
    assert found is not None
    assert (found.step, found.stage) == (2, Stage.STDOUT)
    assert found.cause == "a printed loss differs: what led to it was not seen"
    assert [r.ranks[0].final_loss for r in result.groups[0].runs] == [0.5, 0.25]


def test_printed_losses_that_agree_are_no_evidence(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(NOTHING, out="loss 1\n")] * 3, loss_pattern=LOSS)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no weights were seen" in reason(result)
    assert "--artifact" in reason(result)


def test_one_printed_loss_more_is_a_difference(tmp_path: Path) -> None:
    scripts = [shows(NOTHING, out="loss 1\n" * count) for count in (2, 3)]
    found = audit(tmp_path, *scripts, loss_pattern=LOSS).groups[0].divergence
    assert found is not None
    assert (found.step, found.stage) == (3, Stage.STDOUT)


def test_a_pattern_that_never_matches_is_never_a_match(tmp_path: Path) -> None:
    result = audit(tmp_path, *[shows(training(), out="Loss 1\n")] * 3, loss_pattern=LOSS)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "matched nothing on stdout, whose last line is 'Loss 1'" in reason(result)


def test_what_a_hook_saw_is_named_before_what_was_printed(tmp_path: Path) -> None:
    scripts = [shows(training(end), out=f"loss {end}\n", model=end.encode()) for end in "12"]
    result = audit(tmp_path, *scripts, loss_pattern=LOSS, artifacts=("model",))
    found = result.groups[0].divergence
    assert found is not None
    assert (found.rank, found.step, found.stage) == (0, 2, Stage.UPDATE)
    assert [rank.framework for rank in result.groups[0].runs[0].ranks] == ["torch", "stdout", "artifact"]


def test_a_file_that_differs_beside_an_equal_training(tmp_path: Path) -> None:
    scripts = [shows(training(), out="loss 1\n", model=data) for data in (b"1", b"2")]
    result = audit(tmp_path, *scripts, loss_pattern=LOSS, artifacts=("model",))
    found = result.groups[0].divergence
    assert found is not None
    assert found.stage is Stage.ARTIFACT
    assert "such as the time" in found.cause
    text = click.unstyle(render(result, "table"))
    assert "; losses from stdout (--loss-pattern); weights from model (bytes)" in text
    assert [line.split()[0] for line in text.splitlines()[3:6]] == ["1", "stdout", "artifact"]
    assert "first differ at model: " in text


def test_a_training_whose_weights_no_hook_saw_is_decided_by_its_file(tmp_path: Path) -> None:
    event = {"k": "event", "fw": "script", "step": 1, "stage": "forward", "digest": "a", "value": "0x1p-1"}
    final = {"k": "final", "fw": "script", "steps": 1, "digest": "", "sum": "0x0p+0", "loss": None, "params": 0}
    lines = [hello(), event, {**final, "sparse": False, "devices": []}, {"k": "bye", "how": "exit"}]
    scripts = [shows(lines, model=b"1")] * 2
    for name, files, verdict in (("a", (), Verdict.INCONCLUSIVE), ("b", ("model",), Verdict.DETERMINISTIC)):
        (tmp_path / name).mkdir()
        assert audit(tmp_path / name, *scripts, artifacts=files).verdict is verdict


def test_commands_that_follow_carry_the_options_on(tmp_path: Path) -> None:
    asked = settings(
        tmp_path,
        loss_pattern=LOSS,
        artifacts=("a b.pt", "*.npz"),
        timeout=90.0,
        stages=("init", "update"),
        isolate=True,
        isolate_root=Path("/repo"),
    )
    assert advice.command(asked, "--runs", "3") == (
        r"detaudit run train.py --runs 3 --python python --timeout 90 --stages init,update --loss-pattern "
        r"'loss (\S+)' --artifact 'a b.pt' --artifact '*.npz' --isolate-root /repo"
    )
    plain = settings(tmp_path, isolate=True, fail_fast=True)
    assert advice.command(plain).endswith("--python python --fail-fast --isolate")
    shell = replace(asked, target=Target(arguments=("./train.sh",)))
    assert advice.command(shell).endswith("--isolate-root /repo -- ./train.sh")
    assert "--python" not in advice.command(shell)
