"""What a trace says was in force, and what follows from it for the recipe."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.auditor.audit import Auditor
from detaudit.model import Audit, Group
from tests.auditor.fakes import FakeLauncher, run, settings, training

SWITCH = "torch.backends.cudnn.benchmark"


def in_force(values: dict[str, Any] | None = None, start: dict[str, str] | None = None, **late: str) -> dict[str, Any]:
    start = {"PYTHONHASHSEED": "0"} if start is None else start
    environ = {"start": start, "torch": {**start, **late}, "end": {**start, **late}}
    return {"k": "settings", "values": values or {}, "environ": environ, "files": []}


def source(what: str, value: str, kind: str = "seed", line: int = 5) -> dict[str, Any]:
    return {"k": "source", "kind": kind, "what": what, "file": "/w/train.py", "line": line, "value": value}


def audit(folder: Path, *runs: list[dict[str, Any]], recipe: str = "none") -> Audit:
    applied = [
        {"k": "flag", "id": flag, "state": "applied", "detail": ""}
        for flag in ("python-random-seed", "torch-seed", "torch-cudnn-benchmark-off", "tensorflow-op-determinism")
    ]
    scripts = [run([*training()[:1], *applied, *lines, *training()[1:]]) for lines in runs]
    return Auditor(settings(folder, recipe, runs=len(runs)), FakeLauncher(*scripts)).run()


def state(group: Group, flag: str) -> tuple[str, str]:
    return next((f.state, f.detail) for f in group.flags if f.id == flag)


def doubts(result: Audit) -> list[str]:
    return [warning for warning in result.warnings if "inotify" not in warning and "not applied" not in warning]


def test_a_switch_that_the_script_set_back(tmp_path: Path) -> None:
    result = audit(tmp_path, *[[in_force({SWITCH: True})]] * 2, recipe="all")
    assert state(result.groups[0], "torch-cudnn-benchmark-off") == ("overridden", f"{SWITCH} was True at the end")
    assert any("torch-cudnn-benchmark-off was applied, but" in text for text in doubts(result))
    assert state(result.groups[0], "tensorflow-op-determinism")[0] == "applied"  # nothing was read: nothing is said


@pytest.mark.parametrize(
    ("values", "expected", "doubtful"),
    [
        (("0", "0"), ("applied", ""), False),
        (("42", "42"), ("overridden", "/w/train.py:5 calls torch.manual_seed(42)"), False),
        (
            ("42", "43"),
            ("overridden", "/w/train.py:5 calls torch.manual_seed() with a seed that differs between runs"),
            True,
        ),
    ],
)
def test_a_script_with_a_seed_of_its_own(
    tmp_path: Path, values: tuple[str, str], expected: tuple[str, str], doubtful: bool
) -> None:
    runs = [[source("torch.manual_seed", value), in_force()] for value in values]
    result = audit(tmp_path, *runs, recipe="seeds")
    assert state(result.groups[0], "torch-seed") == expected
    assert bool(doubts(result)) == doubtful


def test_a_seed_taken_back_without_another(tmp_path: Path) -> None:
    result = audit(tmp_path, *[[source("torch.seed", "", "unseeded"), in_force()]] * 2, recipe="seeds")
    assert state(result.groups[0], "torch-seed") == ("overridden", "/w/train.py:5 calls torch.seed() without a seed")
    assert doubts(result)


def test_a_variable_that_a_launcher_changed_on_the_way(tmp_path: Path) -> None:
    result = audit(tmp_path, *[[in_force(start={"PYTHONHASHSEED": "random"})]] * 2, recipe="seeds")
    detail = "PYTHONHASHSEED was 'random' when the process started"
    assert state(result.groups[0], "python-hash-seed") == ("overridden", detail)


def test_runs_that_were_not_set_alike(tmp_path: Path) -> None:
    result = audit(tmp_path, [in_force({SWITCH: True})], [in_force({SWITCH: False})], [in_force({SWITCH: True})])
    assert doubts(result) == [f"none: run 2 did not have the settings of run 1: {SWITCH} False (was True)"]
    assert [(s.name, s.value) for s in result.groups[0].settings] == [(SWITCH, True), ("PYTHONHASHSEED", "0")]


def change(name: str, value: str, *after: str) -> dict[str, Any]:
    return {"k": "environ", "name": name, "value": value, "file": "/w/a.py", "line": 3, "after": list(after)}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (change("PYTHONHASHSEED", "5"), "sets PYTHONHASHSEED inside the process"),
        (change("PYTHONHASHSEED", "0"), ""),
        (change("OMP_NUM_THREADS", "2"), ""),
        (change("OMP_NUM_THREADS", "2", "torch"), "no effect on torch"),
        (change("NCCL_ALGO", "Ring", "torch"), ""),
    ],
)
def test_what_is_set_without_effect(tmp_path: Path, line: dict[str, Any], words: str) -> None:
    found = doubts(audit(tmp_path, *[[line, in_force()]] * 2))
    assert bool(found) == bool(words)
    assert all(words in text and "/w/a.py:3" in text for text in found)


def test_files_that_cannot_be_watched_are_a_warning(tmp_path: Path) -> None:
    # conftest takes inotify away.
    assert any("inotify" in warning for warning in audit(tmp_path, [in_force()], [in_force()]).warnings)
    (tmp_path / "one").mkdir()
    assert not audit(tmp_path / "one", [in_force()]).warnings


def test_a_variable_that_this_version_does_not_read(tmp_path: Path) -> None:
    start = {"PYTHONHASHSEED": "0", "TORCHINDUCTOR_DETERMINISTIC": "1"}
    flag = "torch-inductor-deterministic"
    for number, (torch, expected) in enumerate({"2.9.1": "unavailable", "2.10.0": "applied"}.items()):
        (folder := tmp_path / str(number)).mkdir()
        lines = [{**line, "version": torch} if line["k"] == "framework" else line for line in training()]
        scripts = [run([lines[0], in_force(start=start), *lines[1:]])] * 2
        result = Auditor(settings(folder, "torch-compile", runs=2), FakeLauncher(*scripts)).run()
        assert state(result.groups[0], flag)[0] == expected
        told = [text for text in result.warnings if f"{flag} was not applied: torch 2.9.1 does not know it" in text]
        assert bool(told) == (expected == "unavailable")


def test_a_variable_that_holds_the_users_settings_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.launch.xla.refusal", lambda *_: "")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    both = "--xla_dump_to=x --xla_gpu_deterministic_ops=true"
    start = {"JAX_THREEFRY_PARTITIONABLE": "1", "JAX_DEFAULT_PRNG_IMPL": "threefry2x32", "JAX_RANDOM_SEED_OFFSET": "0"}
    for number, (value, expected) in enumerate({both: "applied", "--xla_dump_to=x": "overridden"}.items()):
        (folder := tmp_path / str(number)).mkdir()
        lines = [in_force(start={**start, "PYTHONHASHSEED": "0", "XLA_FLAGS": value})]
        scripts = [run([*training()[:1], *lines, *training()[1:]])] * 2
        launcher = FakeLauncher(*scripts)
        result = Auditor(settings(folder, "jax", runs=2), launcher).run()
        assert launcher.specs[0].env["XLA_FLAGS"] == both
        assert state(result.groups[0], "jax-xla-deterministic-ops")[0] == expected
        assert state(result.groups[0], "jax-prng")[0] == "applied"


def test_a_flag_that_is_refused_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.launch.xla.refusal", lambda *_: "it does not know it")
    launcher = FakeLauncher(*[run(training())] * 2)
    result = Auditor(settings(tmp_path, "jax", runs=2), launcher).run()
    assert "XLA_FLAGS" not in launcher.specs[0].env
    assert state(result.groups[0], "jax-xla-deterministic-ops") == ("unavailable", "it does not know it")
