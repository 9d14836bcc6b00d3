"""One side of a comparison is loaded from a results folder, or from a lock file."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from detaudit import store
from detaudit.audit import Auditor
from detaudit.baseline import load, write_lock
from detaudit.errors import AuditNotFoundError, ExitCode, NothingToCompareError, UnknownNameError, UsageError
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import Recording, RunRecord, Stage, Weight
from detaudit.model.problems import Failed, LogIncomplete, LossPatternUnmatched, NoTraining, OnlyProbes, RunError
from detaudit.model.warnings import PrintedLossesSkipped, ProcessesKilled, RunsDiffer
from tests.fakes import FakeLauncher, Script, hello, run, settings, training
from tests.logs import hexed
from tests.recorded import RECIPE, recording, trained

Lines = list[dict[str, Any]]


def printing(text: str, lines: Lines) -> Script:
    def launched(spec: RunSpec) -> RunOutcome:
        outcome = run(lines)(spec)
        (spec.folder / "stdout.log").write_text(text)
        return outcome

    return launched


def audited(folder: Path, *scripts: Script, recipes: Sequence[str] = ("none",), **options: Any) -> Path:
    """Audit one run of each recipe, and return the results folder."""
    folder.mkdir(exist_ok=True)
    runs = len(scripts) // len(recipes)
    requested = settings(folder, *recipes, runs=runs, **options)
    Auditor(requested, FakeLauncher(*scripts)).run()
    return requested.out


def with_weights(update: str = "same") -> Lines:
    weights = [["torch.float32", [2], "00ff", "0x1.8p+1"]]
    return [{**line, "weights": weights} if line["k"] == "final" else line for line in training(update)]


def test_an_audit(tmp_path: Path) -> None:
    out = audited(tmp_path, run(with_weights()))
    loaded = load(str(out))
    (rank,) = loaded.recording.run.parts
    assert rank.final is not None
    assert loaded.warnings == ()
    assert (rank.final.digest, rank.final.sum, rank.steps) == (hexed("same"), 3.0, 2)
    assert rank.digests[Stage.UPDATE] == {1: (hexed("w1"),), 2: (hexed("same"),)}
    assert rank.losses == {1: 0.5, 2: 0.5}
    assert rank.final.weights == (Weight(dtype="torch.float32", shape=(2,), digest="00ff", sum=3.0),)
    assert loaded.recording.command == ("train.py",)
    assert loaded.recording.environment["torch"] == "2.13.0"
    assert "detaudit" not in loaded.recording.environment
    assert load(str(out / "audit.json")) == loaded


def test_the_first_run_that_finished_is_taken(tmp_path: Path) -> None:
    out = audited(tmp_path, run(training("a"), exit_code=1), run(training("b")), run(training("c")))
    loaded = load(str(out))
    assert loaded.recording.run.ranks[0].digest == hexed("b")
    assert loaded.warnings == (RunsDiffer(recording=str(out)),)


def test_the_warnings_of_the_run_are_kept(tmp_path: Path) -> None:
    out = audited(tmp_path, run(training(), left_processes=["sleep 9"]))
    assert load(str(out)).warnings == (ProcessesKilled(recording=str(out), run=1, commands=("sleep 9",)),)


def test_a_recipe_is_chosen_by_name(tmp_path: Path) -> None:
    out = audited(tmp_path, run(training("a")), run(training("b")), recipes=("none", "seeds"))
    assert load(str(out)).recording.run.ranks[0].digest == hexed("a")
    seeds = load(str(out), "seeds").recording
    assert (seeds.run.ranks[0].digest, seeds.recipe.name) == (hexed("b"), "seeds")
    with pytest.raises(UnknownNameError, match="unknown recipe 'seed'") as caught:
        load(str(out), "seed")
    assert "Did you mean 'seeds'? Available: none, seeds." in caught.value.hint


def test_a_results_folder_that_was_moved_is_read_where_it_is_now(tmp_path: Path) -> None:
    out = audited(tmp_path, run(training("old")))
    before = tmp_path / "before"
    shutil.move(out, before)
    expected = load(str(before)).recording
    assert expected.run.ranks[0].digest == hexed("old")
    audited(tmp_path, run(training("new")))  # where the first one was
    assert load(str(before)).recording == expected
    assert load(str(out)).recording != expected


def of_an_older_version(out: Path) -> None:
    """Write the audit as older versions did: with absolute paths."""
    audit = store.load(out)
    groups = [replace(g, runs=tuple(replace(r, log_dir=str(out / r.log_dir)) for r in g.runs)) for g in audit.groups]
    store.save(out, replace(audit, groups=tuple(groups)))


def test_paths_of_logs_are_relative_to_the_results_folder(tmp_path: Path) -> None:
    out = audited(tmp_path, run(training()), run(training()), recipes=("none", "seeds"))
    assert [run.log_dir for group in store.load(out).groups for run in group.runs] == ["runs/none/1", "runs/seeds/1"]
    assert str(tmp_path) not in json.dumps(json.loads((out / "audit.json").read_bytes())["groups"])


def test_an_audit_of_an_older_version_has_absolute_paths(tmp_path: Path) -> None:
    out = audited(tmp_path, run(training()))
    expected = load(str(out)).recording
    of_an_older_version(out)
    assert load(str(out)).recording == expected
    alone = tmp_path / "saved.json"
    shutil.copy(out / "audit.json", alone)
    assert load(str(alone)).recording == expected, "its logs are where they were"
    shutil.move(out, tmp_path / "moved")
    assert load(str(tmp_path / "moved")).recording == expected


@pytest.mark.parametrize("older", [False, True])
def test_an_audit_without_its_event_logs(tmp_path: Path, older: bool) -> None:
    out = audited(tmp_path, run(training()))
    if older:
        of_an_older_version(out)
    alone = tmp_path / "saved.json"
    shutil.copy(out / "audit.json", alone)
    shutil.rmtree(out / "runs")
    for place in (alone, out):
        with pytest.raises(AuditNotFoundError, match="the event logs of run 1 are missing or unreadable"):
            load(str(place))


@pytest.mark.parametrize("older", [False, True])
def test_event_logs_of_a_different_audit_are_not_taken_for_this_one(tmp_path: Path, older: bool) -> None:
    out = audited(tmp_path, run(training("old")))
    if older:
        of_an_older_version(out)
    before = (out / "audit.json").read_bytes()
    shutil.rmtree(out)
    audited(tmp_path, run(training("new")))
    (out / "audit.json").write_bytes(before)
    with pytest.raises(AuditNotFoundError, match="are from a different audit"):
        load(str(out))


def test_printed_losses_are_read_again(tmp_path: Path) -> None:
    pattern = re.compile(r"loss (\S+)")
    out = audited(tmp_path, printing("loss 0.5\nloss 0.25\n", training()), loss_pattern=pattern)
    _, printed = load(str(out), losses=pattern).recording.run.parts
    assert (printed.framework, printed.losses) == ("stdout", {1: 0.5, 2: 0.25})
    without = load(str(out))
    assert len(without.recording.run.parts) == 1
    assert without.warnings == (PrintedLossesSkipped(recording=str(out)),)
    with pytest.raises(NothingToCompareError, match="no losses can be read from the stdout of run 1") as caught:
        load(str(out), losses=re.compile(r"error (\S+)"))
    assert caught.value.facts == (LossPatternUnmatched(pattern=r"error (\S+)", last_line="loss 0.25"),)


def test_a_program_that_only_prints(tmp_path: Path) -> None:
    pattern = re.compile(r"loss (\S+)")
    out = audited(tmp_path, printing("loss 0.5\n", [hello(argv=["sh"])]), loss_pattern=pattern)
    assert [part.framework for part in load(str(out), losses=pattern).recording.run.parts] == ["stdout"]
    with pytest.raises(NothingToCompareError, match="has only printed losses"):
        load(str(out))


def test_files_are_known_from_the_audit(tmp_path: Path) -> None:
    def launched(spec: RunSpec) -> RunOutcome:
        (spec.cwd / "model.bin").write_bytes(b"weights")
        return run([hello(argv=["sh"])])(spec)

    out = audited(tmp_path, launched, artifacts=("model.bin",))
    (file,) = load(str(out)).recording.run.parts
    (written,) = store.load(out).groups[0].runs[0].artifacts
    assert file.digests == {Stage.ARTIFACT: {0: (f"{written.digest} model.bin",)}}
    assert (file.final and file.final.digest) == store.load(out).groups[0].runs[0].ranks[0].digest


@pytest.mark.parametrize(
    ("script", "fact"),
    [
        (run(training(), exit_code=3), Failed(exit_code=3)),
        (run([hello(), {"k": "bye", "how": "exit"}]), NoTraining(imported=())),
        (run(training()[:-1]), LogIncomplete(pid=7)),
    ],
)
def test_an_audit_that_recorded_nothing(tmp_path: Path, script: Script, fact: RunError) -> None:
    out = audited(tmp_path, script)
    with pytest.raises(NothingToCompareError, match="has no run with recipe none that can be compared") as caught:
        load(str(out))
    assert caught.value.facts == (fact,)
    assert caught.value.exit_code is ExitCode.INCONCLUSIVE


def test_probes_alone_are_nothing_to_compare(tmp_path: Path) -> None:
    probe = {"k": "probe", "name": "a", "n": 1, "step": None, "kind": "value", "digest": "d", "value": None}
    out = audited(tmp_path, run([hello(), probe, {"k": "bye", "how": "exit"}]))
    with pytest.raises(NothingToCompareError, match="has no run with recipe none that can be compared") as caught:
        load(str(out))
    assert caught.value.facts == (OnlyProbes(),)


def lock(folder: Path, *names: str, **audits: Recording) -> Path:
    path = folder / "detaudit.lock.json"
    write_lock(path, {name: recording(trained(end=name)) for name in names} | audits)
    return path


def test_a_baseline(tmp_path: Path) -> None:
    path = lock(tmp_path, "train", "eval")
    assert load(f"{path}#eval").recording.run.ranks[0].digest == "eval"
    with pytest.raises(UnknownNameError, match="unknown baseline 'trian'") as caught:
        load(f"{path}#trian")
    assert "Did you mean 'train'?" in caught.value.hint
    with pytest.raises(UnknownNameError, match="has 2 baselines") as named:
        load(str(path))
    assert f"{path}#eval, {path}#train" in named.value.hint


def test_a_lock_file_with_one_baseline_needs_no_name(tmp_path: Path) -> None:
    path = lock(tmp_path, "train")
    assert load(str(path)).recording.run.ranks[0].digest == "train"
    other = path.rename(tmp_path / "other#1.json")  # A file name may contain the sign.
    assert load(str(other)) == load(f"{other}#train")


def test_lock_files_without_a_recording(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="has 0 baselines"):
        load(str(lock(tmp_path)))
    with pytest.raises(NothingToCompareError, match="recorded nothing"):
        load(f"{lock(tmp_path, empty=Recording(command=(), recipe=RECIPE, environment={}, run=RunRecord()))}#empty")


@pytest.mark.parametrize("name", ["detaudit.lock.json", "detaudit.lock.json#train", "other.json#train"])
def test_a_missing_lock_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(AuditNotFoundError, match="no lock file"):
        load(str(tmp_path / name))


def test_what_is_neither_an_audit_nor_a_lock_file(tmp_path: Path) -> None:
    with pytest.raises(AuditNotFoundError, match="no audit in"):
        load(str(tmp_path / "gone"))
    (tmp_path / "text.json").write_text("hello")
    with pytest.raises(AuditNotFoundError, match="is not an audit"):
        load(str(tmp_path / "text.json"))
    with pytest.raises(UsageError, match="has no baselines, so none called 'train'"):
        load(f"{audited(tmp_path, run(training()))}#train")
