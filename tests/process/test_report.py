"""Print the report of an earlier audit again: the newest one, to a file, as one HTML file."""

import os
import stat
from pathlib import Path

from tests.process.conftest import Project


def test_the_newest_report_is_printed(project: Project, seeded: str, unseeded: str) -> None:
    project.run("train.py", "--runs", "2", "--out", ".detaudit/b")
    project.write("train.py", "import training\ntraining.train(seed=0)\n")
    project.run("train.py", "--runs", "2", "--out", ".detaudit/a")
    assert project.detaudit("report", "--last", "--format", "json").json["verdict"] == "deterministic"
    os.utime(project.folder / ".detaudit/b/audit.json")
    assert project.detaudit("report", "--last", "--format", "json").json["verdict"] == "nondeterministic"


def test_a_report_is_written_to_a_file_as_html_with_figures(project: Project, unseeded: str) -> None:
    project.run("train.py", "--runs", "2", "--out", "out")
    file = project.folder / "report.html"
    done = project.detaudit("report", "out", "--format", "html", "-o", str(file))
    assert (done.code, done.out) == (0, "")
    text = file.read_text()
    assert text.count("data-values=") == 2
    assert "training.py:8" in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~_umask()
    for log in Path(project.folder, "out").rglob("*.jsonl"):
        log.unlink()
    gone = project.detaudit("report", "out", "--format", "html")
    assert gone.code == 0
    assert "No figures: the event logs of these runs are not in the results folder" in gone.out
    assert "data-values=" not in gone.out


def test_a_deterministic_page_does_not_ask_where_runs_differ(project: Project, seeded: str) -> None:
    project.run("train.py", "--runs", "2", "--out", "out")
    page = project.detaudit("report", "out", "--format", "html").out
    assert "<h2>Runs</h2>" in page
    assert "<h2>Loss</h2>" in page
    assert "differ first" not in page
    assert "first differ" not in page


def test_commands_name_a_results_folder_where_it_is_now(project: Project, unseeded: str) -> None:
    project.run("train.py", "--runs", "2", "--out", "out")
    before = project.detaudit("report", "out").out
    assert "detaudit report out\n" in before
    Path(project.folder, "out").rename(project.folder / "new place")
    after = project.detaudit("report", "new place").out
    assert after == before.replace("detaudit report out\n", "detaudit report 'new place'\n")
    assert "detaudit report &#39;new place&#39;" in project.detaudit("report", "new place", "--format", "html").out


def test_a_folder_and_last_exclude_each_other(project: Project) -> None:
    for words in (("report",), ("report", "out", "--last"), ("report", "--last")):
        done = project.detaudit(*words)
        assert done.code == 2
        assert done.err.startswith("error: ")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
