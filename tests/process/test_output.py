"""What a person or a program reads: formats, files, the report command, the progress line."""

import json
import os
import pty
import subprocess
import sys

import pytest

from tests.process.conftest import Project


def test_audit_json_has_its_documented_keys(project: Project, unseeded: str) -> None:
    done = project.run(unseeded, "--runs", "2", "--out", "results")
    audit = done.json
    assert set(audit) >= {"kind", "schema_version", "command", "environment", "verdict", "groups"}
    assert (audit["kind"], audit["schema_version"]) == ("run", "2.0")
    group = audit["groups"][0]
    assert set(group) >= {
        "recipe",
        "verdict",
        "distinct_results",
        "confidence",
        "runs",
        "first_difference",
        "output_differences",
    }
    assert group["recipe"] == {"name": "none", "seed": 0, "flags": []}
    run = group["runs"][0]
    assert set(run) >= {"id", "status", "exit_code", "wall_s", "steps", "ranks"}
    assert set(run["ranks"][0]) >= {"rank", "sum_of_weights", "final_loss", "digest"}
    assert set(group["first_difference"]) >= {"runs", "rank", "step", "stage", "site", "explanation"}
    assert (project.folder / "results" / "audit.json").read_text() == done.out


def test_logs_are_kept_beside_the_audit(project: Project) -> None:
    project.write(
        "train.py", "import sys, training\nprint('out')\nprint('err', file=sys.stderr)\ntraining.train(seed=0)\n"
    )
    project.detaudit("run", "train.py", "--runs", "2", "--recipe", "none", "--recipe", "seeds", "--out", "results")
    for recipe in ("none", "seeds"):
        for number in ("1", "2"):
            folder = project.folder / "results" / "runs" / recipe / number
            assert (folder / "stdout.log").read_text() == "out\n"
            assert (folder / "stderr.log").read_text() == "err\n"


@pytest.mark.parametrize("format_", ["table", "json", "markdown", "html"])
def test_report_prints_the_same_again(project: Project, unseeded: str, format_: str) -> None:
    first = project.detaudit("run", unseeded, "--runs", "2", "--out", "results", "--format", format_)
    again = project.detaudit("report", "results", "--format", format_)
    assert (again.code, again.out) == (0, first.out)


def test_results_are_hidden_from_git(project: Project, seeded: str) -> None:
    project.detaudit("run", seeded, "--runs", "1")
    assert (project.folder / ".detaudit" / ".gitignore").read_text() == "*\n"
    assert len(list((project.folder / ".detaudit").glob("*/audit.json"))) == 1


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_survives(project: Project) -> None:
    project.write(
        "train.py",
        """
        import torch
        w = torch.ones(1, requires_grad=True)
        (w * float("nan")).sum().backward()
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    assert done.json["groups"][0]["runs"][0]["ranks"][0]["final_loss"] == "nan"


def test_nothing_but_errors_on_stderr_when_it_is_not_a_terminal(project: Project, seeded: str) -> None:
    assert project.detaudit("run", seeded, "--runs", "2").err == ""


def on_a_terminal(project: Project, *words: str) -> tuple[str, str]:
    """Return what was written to a terminal as stderr, and stdout, which is a pipe."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        project.command(*words), cwd=project.folder, stdout=subprocess.PIPE, stderr=theirs, env=env, text=True
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    return seen.decode(), out


SLOW = "import time, training\nfor n in range(4):\n    training.train(seed=n)\n    time.sleep(0.3)\n"


def test_progress_is_shown_on_a_terminal(project: Project) -> None:
    project.write("train.py", SLOW)
    seen, out = on_a_terminal(project, "run", "train.py", "--runs", "2", "--format", "json")
    assert "run 1 of 2" in seen
    assert "run 2 of 2" in seen
    assert "loss " in seen
    assert "left" in seen
    assert json.loads(out)["verdict"] == "deterministic"


def test_quiet_is_quiet(project: Project) -> None:
    project.write("train.py", SLOW)
    seen, _ = on_a_terminal(project, "run", "train.py", "--runs", "1", "--quiet")
    assert seen == ""


def test_help_and_version_answer_without_loading_the_auditor(project: Project) -> None:
    assert project.detaudit("--version").out.startswith("detaudit, version ")
    done = project.detaudit("--help")
    assert (done.code, "run" in done.out) == (0, True)
    code = "import sys, detaudit.cli as c; c.main(['--help']); print('msgspec' in sys.modules, 'psutil' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.splitlines()[-1] == "False False"
