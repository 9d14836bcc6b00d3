"""``detaudit check --engine``: gates over runs on other hosts, which are this machine behind a program for ssh."""

from pathlib import Path

import pytest

from tests.process.conftest import Finished, Project
from tests.remote.engines.hosts import pretended, python

AUDITS = """
audits:
  plain: {{command: train.py, runs: 2, python: {python}, env: {{SEED: "7"}}}}
  again: {{command: train.py, runs: 2, python: {python}, baseline: false}}
  stops: {{command: train.py, runs: 2, python: {python}, resume: train.py --resume}}
  other: {{command: train.py, runs: 2, python: /elsewhere/python}}
"""
TRAIN = "import os, training\ntraining.train(seed=int(os.environ.get('SEED', 0)))\n"


class Checks:
    """A project with audits, and hosts that do their runs."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.folder = project, folder
        folder.mkdir()
        self.env = {"DETAUDIT_SSH_COMMAND": pretended(folder)}
        project.write("train.py", TRAIN)
        project.write("detaudit.yaml", AUDITS.format(python=python()))

    def check(self, *words: str) -> Finished:
        return self.project.detaudit("check", "--format", "json", *words, env=self.env)

    @property
    def sent(self) -> int:
        return sum(len(path.read_text().split()) for path in self.folder.glob("*.pids"))


@pytest.fixture
def checks(project: Project, tmp_path: Path) -> Checks:
    return Checks(project, tmp_path / "hosts")


@pytest.mark.slow
def test_a_baseline_of_this_machine_holds_on_hosts_that_are_like_it(checks: Checks) -> None:
    assert checks.check("plain", "--update").code == 0
    assert checks.sent == 0
    done = checks.check("plain", "again", "--engine", "ssh:a,b")
    assert done.code == 0, done.out + done.err
    gates = [[(gate["name"], gate["status"]) for gate in one["gates"]] for one in done.json["audits"]]
    assert gates == [[("repeatable", "passed"), ("same as baseline", "passed")], [("repeatable", "passed")]]
    assert checks.sent == 4
    checks.project.write("train.py", TRAIN.replace("0)", "1)").replace("'SEED'", "'NONE'"))
    assert checks.check("plain", "--engine", "ssh:a,b").code == 1


def test_a_baseline_is_written_of_runs_there(checks: Checks) -> None:
    assert checks.check("plain", "--update", "--engine", "ssh:a").code == 0
    done = checks.check("plain")
    assert done.code == 0, done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("stops",), "audit 'stops': the gate resume"),
        (("plain", "other"), "different interpreters"),
        (("plain", "--jobs", "2"), "--jobs cannot be combined"),
    ],
)
def test_what_only_works_here_is_refused(checks: Checks, words: tuple[str, ...], said: str) -> None:
    done = checks.check(*words, "--engine", "ssh:a")
    assert done.code == 2
    assert said in done.err
    assert not checks.sent


def test_an_interpreter_of_other_hosts_need_not_be_here(checks: Checks) -> None:
    done = checks.check("other", "--engine", "ssh:a")
    assert done.code == 125
    assert "a: detaudit cannot be started" in done.err
    assert "/elsewhere/python" in done.err
