"""Targets of the command line, and errors for invalid ones."""

import sys
from pathlib import Path

import pytest

from detaudit.errors import UnknownNameError, UsageError
from detaudit.launch.target import resolve_target


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    return "train.py"


def test_a_script_runs_with_its_arguments(script: str) -> None:
    target = resolve_target((script,), ("--lr", "1"), "", None)
    assert target.argv == (sys.executable, script, "--lr", "1")
    assert target.expected_argument == script


def test_a_module_runs_like_python_m() -> None:
    target = resolve_target((), ("x",), "pkg.train", None)
    assert target.argv == (sys.executable, "-m", "pkg.train", "x")
    assert target.expected_argument == "pkg.train"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("python3", "-I", "train.py", "a.py"), "train.py"),
        (("/usr/bin/python3.11", "-m", "pkg.train"), "pkg.train"),
        (("sh", "run.sh", "conf.py"), ""),
        (("python3", "-c", "pass"), ""),
    ],
)
def test_a_command_may_name_the_training_process(
    command: tuple[str, ...], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("detaudit.launch.target.which", lambda name: name)
    target = resolve_target((), command, "", None)
    assert target.argv == command
    assert target.expected_argument == expected


def test_invalid_targets_are_refused(script: str) -> None:
    with pytest.raises(UsageError, match="nothing to run"):
        resolve_target((), (), "", None)
    with pytest.raises(UsageError, match="unexpected argument"):
        resolve_target((script,), (), "pkg", None)
    with pytest.raises(UsageError, match="an interpreter was named for a command"):
        resolve_target((), (sys.executable, script), "", sys.executable)
    with pytest.raises(UnknownNameError, match="no-such-python"):
        resolve_target((script,), (), "", "no-such-python")


def test_programs_of_other_machines_are_not_looked_for(script: str) -> None:
    assert resolve_target((script,), (), "", "/elsewhere/python", here=False).python == "/elsewhere/python"
    assert not resolve_target((script,), (), "", None, here=False).python_found
    assert resolve_target((), ("/elsewhere/train",), "", None, here=False).words == ("/elsewhere/train",)
