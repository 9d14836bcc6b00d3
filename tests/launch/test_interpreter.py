"""Which Python runs the training if the user names none: what a person expects who typed ``python train.py`` before."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from detaudit.launch import target
from detaudit.launch.target import resolve_target

Own = Callable[..., Path]


def environment(folder: Path) -> str:
    """Make what looks like a virtual environment, and return its Python."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return str(python)


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """A folder in a repository."""
    folder = tmp_path / "home" / "repository" / "folder"
    folder.mkdir(parents=True)
    (folder.parent / ".git").mkdir()
    return folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Own:
    """Install detaudit in an environment of its own, and start it by its script, with no environment active."""

    def install(*packages: str, system: bool = False, module: bool = False) -> Path:
        folder = tmp_path / "tool"
        python = environment(folder)
        monkeypatch.setattr(sys, "executable", python)
        monkeypatch.setattr(sys, "prefix", str(folder))
        monkeypatch.setattr(sys, "base_prefix", str(folder if system else tmp_path / "base"))
        monkeypatch.setattr(sys, "argv", ["detaudit/__main__.py" if module else str(folder / "bin" / "detaudit")])
        monkeypatch.setattr(target, "find_spec", lambda name: name if name in packages else None)
        monkeypatch.setattr("sysconfig.get_path", lambda name: str(folder / "bin"))
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{tmp_path / 'usr' / 'bin'}")
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"):
            monkeypatch.delenv(name, raising=False)
        return folder

    return install


def test_a_tool_takes_the_active_environment(
    own: Own, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own()
    environment(cwd / ".venv")
    conda = environment(tmp_path / "conda")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    assert target.training_python(cwd) == conda
    active = environment(tmp_path / "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert target.training_python(cwd) == active


def test_the_base_of_conda_is_active_everywhere_and_chooses_nothing(
    own: Own, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own()
    environment(tmp_path / "conda")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("CONDA_DEFAULT_ENV", "base")
    project = environment(cwd / ".venv")
    assert target.training_python(cwd) == project


def test_a_tool_takes_the_nearest_environment_of_the_repository(own: Own, cwd: Path) -> None:
    tool = own()
    environment(cwd.parents[1] / ".venv")
    assert target.training_python(cwd) == str(tool / "bin" / "python"), "outside of the repository"
    outer = environment(cwd.parent / ".venv")
    assert target.training_python(cwd) == outer
    inner = environment(cwd / ".venv")
    assert target.training_python(cwd) == inner


def test_an_other_python_is_of_another_environment(own: Own, cwd: Path) -> None:
    own()
    outer = environment(cwd.parent / ".venv")
    assert target.other_python(cwd, sys.executable) == outer
    assert target.other_python(cwd, str(Path(outer).with_name("python3.11"))) == ""


@pytest.mark.parametrize("name", ["python", "python3"])
def test_a_tool_takes_the_python_of_a_shell_and_not_the_one_that_uvx_puts_in_front(
    own: Own, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    own()
    shell = Path(environment(tmp_path / "usr")).with_name(name)
    (tmp_path / "usr" / "bin" / "python").rename(shell)
    assert target.training_python(cwd) == str(shell)
    assert target.which(name) == str(shell)
    assert target.outer_environment()["PATH"] == str(tmp_path / "usr" / "bin")
    monkeypatch.delenv("PATH")
    assert "PATH" not in target.outer_environment()


def test_an_environment_that_is_gone_is_passed_over(
    own: Own, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "deleted"))
    project = environment(cwd / ".venv")
    assert target.training_python(cwd) == project


@pytest.mark.parametrize("options", [{"module": True}, {"packages": ["torch"]}], ids=["python -m", "beside torch"])
def test_what_is_installed_beside_a_framework_or_started_by_its_python_stays_there(
    own: Own, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object]
) -> None:
    tool = own(*options.pop("packages", ()), **options)  # type: ignore[misc]
    environment(cwd / ".venv")
    environment(tmp_path / "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert target.training_python(cwd) == str(tool / "bin" / "python")
    assert target.outer_environment() == os.environ


def test_an_active_environment_with_detaudit_stays_there(own: Own, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = own()
    environment(cwd / ".venv")
    monkeypatch.setenv("VIRTUAL_ENV", str(tool))
    assert target.training_python(cwd) == str(tool / "bin" / "python")


def test_what_is_installed_for_a_whole_system_gives_way_to_an_active_environment_only(
    own: Own, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = own("torch", system=True)
    environment(cwd / ".venv")
    assert target.training_python(cwd) == str(tool / "bin" / "python")
    active = environment(tmp_path / "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert target.training_python(cwd) == active
    assert target.outer_environment() == os.environ


def test_a_target_knows_whether_its_python_was_found(own: Own, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own()
    python = environment(cwd / ".venv")
    monkeypatch.chdir(cwd)
    assert resolve_target((), (), "pkg", None).python_found
    named = resolve_target((), (), "pkg", python)
    assert (named.python, named.python_found) == (python, False)


@pytest.mark.parametrize(
    ("has_plugin", "command", "named"),
    [
        (False, ("pytest", "-q"), True),
        (False, ("python", "-m", "pytest"), True),
        (True, ("pytest", "-q"), False),
        (False, ("python", "train.py"), False),
        (False, (), False),
    ],
)
def test_a_pytest_without_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_plugin: bool, command: tuple[str, ...], named: bool
) -> None:
    packages, programs = tmp_path / "lib" / "python3.11" / "site-packages", tmp_path / "bin"
    for folder in (packages / "pytest-9.0.dist-info", programs):
        folder.mkdir(parents=True)
    if has_plugin:
        (packages / "detaudit-1.0.dist-info").mkdir()
    for name in ("python", "pytest"):
        (programs / name).write_text(f"#!{programs / 'python'}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    assert target.pytest_without_plugin(command) == (str(programs / "python") if named else "")
