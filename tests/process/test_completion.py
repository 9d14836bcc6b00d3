"""Real shells complete commands, options, recipes, flags, audits and results folders."""

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.process.conftest import Project
from tests.process.terminals import a_terminal, terminal_environment

Completer = Callable[[str], list[str]]

COMPLETED = {
    "detaudit bis": ["bisect"],
    "detaudit run --fail": ["--fail-fast"],
    "detaudit run train.py --recipe cross": ["cross-machine-cpu"],
    "detaudit run train.py --flag torch-det": ["torch-deterministic-algorithms", "torch-deterministic-warn"],
    "detaudit run train.py --vary hash": ["hash-seed"],
    "detaudit run train.py --stages init,upd": ["init,update"],
    "detaudit run train.py --format ma": ["markdown"],
    "detaudit recipes show openmp-": ["openmp-dynamic-off", "openmp-one-thread"],
    "detaudit check dig": ["digits"],
    "detaudit check --gate ": ["baseline", "commit", "repeatable", "resume"],
    "detaudit report .det": [".detaudit/20261121-145042-24652d70", ".detaudit/20261122-145042-24652d70"],
    "detaudit completion f": ["fish"],
}


@pytest.fixture
def env(project: Project, tmp_path: Path) -> dict[str, str]:
    """An environment with the command, in a project with an audit, and two results folders."""
    command = tmp_path / "bin" / "detaudit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m detaudit "$@"\n')
    command.chmod(0o755)
    project.write("train.py", "")
    project.write("detaudit.yaml", "audits:\n  digits: {command: train.py}\n")
    for day in (21, 22):
        project.write(f".detaudit/202611{day}-145042-24652d70/audit.json", "{}")
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
    return terminal_environment({"PATH": path, "HOME": str(tmp_path), "TERM": "dumb"})


@pytest.mark.parametrize("line", COMPLETED)
def test_bash(project: Project, env: dict[str, str], line: str) -> None:
    words = line.split(" ")
    script = (
        'eval "$(detaudit completion bash)"\n'
        f"COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}') COMP_CWORD={len(words) - 1}\n"
        "_detaudit_completion detaudit\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=project.folder, env=env, capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.splitlines()) == COMPLETED[line], done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize("line", COMPLETED)
def test_fish(project: Project, env: dict[str, str], line: str) -> None:
    script = f"detaudit completion fish | source; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "-c", script], cwd=project.folder, env=env, capture_output=True, text=True, check=True
    )
    assert sorted(one.split("\t")[0] for one in done.stdout.splitlines()) == COMPLETED[line], done.stderr


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ""),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u; "),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_completes_recipes_and_scripts(project: Project, env: dict[str, str], shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    command, before = SHELLS[shell]
    with a_terminal(200) as (ours, theirs):
        process = subprocess.Popen(
            command, cwd=project.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        os.write(ours, f'{before}eval "$(detaudit completion {shell})"; echo rea""dy\n'.encode())
        until(ours, "ready")
        os.write(ours, b"detaudit run train.\t")
        until(ours, "py ")
        os.write(ours, b"--recipe cross\t")
        until(ours, "--recipe cross-machine-cpu ")
        process.kill()
        process.wait()


def until(ours: int, expected: str) -> None:
    """Wait until a terminal shows a text."""
    shown, end = b"", time.monotonic() + 60
    while expected.encode() not in shown:
        assert time.monotonic() < end, shown
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 4096)
