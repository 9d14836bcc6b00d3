"""What a person sees on a terminal: lines that fit, and colors unless they are not wanted."""

import re
import subprocess

import pytest

from tests.process.conftest import Project
from tests.process.terminals import on_a_terminal
from tests.report.widths import too_wide

ESCAPE = "\x1b["
ALL_COLUMNS = r"RUN +SUM OF WEIGHTS +FINAL LOSS +STEPS +TIME +DIGEST +FIRST DIFFERENCE"
CHECKED = """
    audits:
      training-with-a-long-name:
        command: train.py
        runs: 2
"""
COMMANDS = {
    "run": ("run", "train.py", "--runs", "2", "--recipe", "none", "--recipe", "seeds", "--quiet"),
    "bisect": ("bisect", "train.py", "--recipe", "seeds", "--quiet"),
    "trace": ("trace", "train.py", "--quiet"),
    "check": ("check", "--update", "--quiet"),
    "compare": ("compare", "one", "other"),
    "doctor": ("doctor",),
    "recipes": ("recipes",),
    "recipe": ("recipes", "show", "torch-cuda"),
    "flag": ("recipes", "show", "torch-deterministic-algorithms"),
    "help": ("run", "--help"),
    "error": ("run", "train.py", "--recipe", "sedes", "--flag", "torch-seed", "--no-flag", "numpy-seed"),
}


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_wider_than_the_terminal(project: Project, unseeded: str, name: str, columns: int) -> None:
    project.write("detaudit.yaml", CHECKED)
    if name == "compare":
        for out in ("one", "other"):
            project.detaudit("run", unseeded, "--runs", "1", "--out", out)
    text = on_a_terminal(project, *COMMANDS[name], columns=columns)
    assert text.strip()
    assert too_wide(text, columns) == []


def test_a_wide_terminal_shows_more(project: Project, unseeded: str) -> None:
    project.detaudit("run", unseeded, "--runs", "2", "--out", "results")
    narrow, usual, wide = (on_a_terminal(project, "report", "results", columns=columns) for columns in (60, 80, 200))
    for text in (narrow, usual):
        assert re.search("hidden at this width: .*TIME", " ".join(text.split()))
        assert " TIME  " not in text
    assert "hidden" not in wide
    assert re.search(ALL_COLUMNS, wide)


def test_a_pipe_has_whole_lines_and_no_colors(project: Project, unseeded: str) -> None:
    done = project.detaudit("run", unseeded, "--runs", "2")
    assert ESCAPE not in done.out + done.err
    assert re.search(ALL_COLUMNS, done.out)
    assert max(map(len, done.out.splitlines())) > 100
    narrow = project.detaudit("report", "--last", env={"COLUMNS": "60"})
    assert too_wide(narrow.out, 60) == []


@pytest.mark.parametrize(
    ("env", "colors"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "empty", "no-color", "dumb"],
)
def test_colors_on_a_terminal(project: Project, seeded: str, env: dict[str, str], colors: bool) -> None:
    for words in (("run", seeded, "--runs", "2"), ("run", "missing.py"), ("run", "--help"), ("recipes", "show", "all")):
        text = on_a_terminal(project, *words, env=env)
        styled = re.findall(r"\x1b\[[\d;]*m", text)
        assert bool(styled) == colors, words


@pytest.mark.slow
def test_colors_can_be_forced_and_change_no_word(project: Project, unseeded: str) -> None:
    project.detaudit("run", unseeded, "--runs", "2", "--out", "results")
    forced, both, plain = (
        project.detaudit("report", "results", env=env).out
        for env in ({"FORCE_COLOR": "1"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, {})
    )
    assert ESCAPE in forced
    assert re.sub(r"\x1b\[[\d;]*m", "", forced) == plain == both


def test_a_report_in_a_file_has_no_colors(project: Project, unseeded: str) -> None:
    project.detaudit("run", unseeded, "--runs", "2", "--out", "results")
    on_a_terminal(project, "report", "results", "-o", "report.txt")
    text = (project.folder / "report.txt").read_text()
    assert ESCAPE not in text
    assert text == project.detaudit("report", "results").out


def test_verbose_says_how_to_repeat_each_run(project: Project) -> None:
    project.write("train.py", "import os, training\nprint(os.environ['PYTHONHASHSEED'])\ntraining.train(seed=0)\n")
    done = project.detaudit("run", "train.py", "--runs", "2", "--recipe", "seeds", "--out", "results", "-v")
    lines = done.err.splitlines()
    (first,) = (line for line in lines if line.startswith("seeds: run 1 of 2: ") and line.endswith("train.py"))
    (variables, _) = (line for line in lines if line.startswith("  set: "))
    assert "PYTHONHASHSEED=0" in variables
    assert "  logs: results/runs/seeds/2" in lines
    assert (project.folder / "results/runs/seeds/2/stdout.log").read_text() == "0\n"
    ended = [line for line in lines if re.fullmatch(r"seeds: run \d of 2: finished after [\d.]+ s, 3 steps", line)]
    assert len(ended) == 2
    again = f"env {variables.removeprefix('  set: ')} {first.removeprefix('seeds: run 1 of 2: ')}"
    shell = subprocess.run(["bash", "-c", again], cwd=project.folder, capture_output=True, text=True, check=True)
    assert shell.stdout == "0\n"
    silent = project.detaudit("run", "train.py", "--runs", "2", "--recipe", "seeds")
    assert silent.err == ""
    assert silent.out.split("next:")[0].split() != []
