"""The auditor itself as a real process: its own failures, what ends it, and what a user's folder does to it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.process.conftest import Project
from tests.process.test_bad_input import marked_processes

BROKEN = """
    import sys
    from detaudit.judge import group
    from detaudit.__main__ import main

    def result(self):
        return {}["no such key"]

    group.GroupInProgress.result = result
    sys.argv[1:] = ["run", "train.py", "--runs", "2", "--out", "results"]
    sys.exit(main())
"""


def test_an_internal_error_is_no_verdict(project: Project, seeded: str) -> None:
    project.write("broken.py", BROKEN)
    env = {**os.environ, "TMPDIR": str(project.folder)}
    done = subprocess.run(
        [sys.executable, "broken.py"], cwd=project.folder, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr.startswith("error: internal error: KeyError: 'no such key' (audit.py:")
    assert "Traceback" not in done.stderr
    (report,) = project.folder.glob("detaudit-error-*.txt")
    assert str(report) in done.stderr
    assert "Traceback" in report.read_text()


def test_recipes_whose_names_differ_only_in_spaces(project: Project, seeded: str) -> None:
    for number, name in enumerate(("a b", "a_b", "a/b")):
        project.write(f"{number}.yaml", f"name: {name}\nflags: []\n")
    recipes = [word for number in range(3) for word in ("--recipe", f"{number}.yaml")]
    done = project.run(seeded, "--runs", "2", *recipes)
    assert done.code == 0, done.err
    assert len({run["log_dir"] for group in done.json["groups"] for run in group["runs"]}) == 6


IGNORES = """
    import os, signal, subprocess, sys, time, training
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
    training.train(seed=0)
    open("mark", "w").write(os.environ["DETAUDIT_MARK"])
    time.sleep(1000)
"""


@pytest.mark.full
def test_a_second_interruption_during_the_clean_up_leaves_nothing_alive(project: Project) -> None:
    project.write("train.py", IGNORES)
    process = project.start("run", "train.py", "--format", "json", "--out", "results")
    limit = time.monotonic() + 60
    while not (project.folder / "mark").exists() or not (project.folder / "mark").read_text():
        assert time.monotonic() < limit
        time.sleep(0.05)
    mark = (project.folder / "mark").read_text()
    for _ in range(8):
        process.send_signal(signal.SIGINT)
        time.sleep(0.4)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert marked_processes(mark) == []
    assert json.loads((project.folder / "results" / "audit.json").read_text())["interrupted"] is True


def test_a_module_in_the_users_folder_is_not_imported(project: Project, seeded: str) -> None:
    for name in ("psutil", "click", "msgspec", "yaml", "wire"):
        project.write(f"{name}.py", f"open('{name} was imported', 'w').close()\nraise SystemExit('not yours')\n")
    done = project.run(seeded, "--runs", "2")
    assert done.code == 0, done.err
    assert list(project.folder.glob("* was imported")) == []


def test_a_script_without_an_interpreter(project: Project) -> None:
    path = project.write("train.sh", "echo hello\n")
    path.chmod(0o755)
    done = project.detaudit("run", "--", "./train.sh")
    assert done.code == 2
    assert "cannot run './train.sh': Exec format error" in done.err
    assert "#!/bin/sh" in done.err
    path.chmod(0o644)
    done = project.detaudit("run", "--", "./train.sh")
    assert (done.code, "not executable: './train.sh'" in done.err, "chmod +x" in done.err) == (2, True, True)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "soon"])
def test_a_timeout_that_is_no_time(project: Project, seeded: str, value: str) -> None:
    done = project.detaudit("run", seeded, "--timeout", value)
    assert done.code == 2
    assert "--timeout" in done.err


def test_a_script_that_asks_for_input(project: Project) -> None:
    project.write("train.py", "name = input('name? ')\n")
    done = project.detaudit("run", "train.py", "--runs", "3")
    assert done.code == 125
    assert "it asked for input, and a run has none" in done.out


def test_a_failure_that_repeats_ends_the_audit(project: Project) -> None:
    project.write("train.py", "open('runs', 'a').write('x')\nraise ValueError(id(object()))\n")
    done = project.run("train.py", "--runs", "5")
    assert done.code == 125
    assert (project.folder / "runs").read_text() == "xx"
    assert done.json["warnings"][0]["kind"] == "runs-fail-alike"


def test_steps_that_are_recorded_from_the_start_count_as_runs(project: Project, seeded: str) -> None:
    done = project.detaudit("trace", seeded, "--from-step", "1", "--format", "json")
    assert done.code in (0, 125), done.err
    (group,) = done.json["groups"]
    assert group["runs"]
    assert done.json["total_runs"] == sum(one["runs"] for one in done.json["passes"])


@pytest.mark.full
def test_an_edited_script_is_not_resumed(project: Project, unseeded: str) -> None:
    done = project.detaudit("bisect", unseeded, "--recipe", "seeds", "--out", "found")
    assert done.code == 0, done.err
    again = project.detaudit("bisect", "--resume", "found", "--format", "json")
    assert again.code == 0, again.err
    project.write("training.py", (project.folder / "training.py").read_text() + "# edited\n")
    done = project.detaudit("bisect", "--resume", "found")
    assert done.code == 2
    assert "training.py changed since this bisection began" in done.err
