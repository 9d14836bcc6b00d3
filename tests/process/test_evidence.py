"""From the command line: an audit with --evidence, its archive checked, and a tree that has changed since."""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.process.conftest import PLAIN, Project

SCRIPT = """
    import json, sys
    from pathlib import Path
    from helper import train

    settings = json.load(open("settings.json"))
    Path("data").joinpath("x.csv").read_text()
    weights = train(seed=settings["seed"])
    with open("weights.txt", "w") as file:
        print(weights, file=file)
    open("weights.txt").read()
    open(__file__).read()
"""


def git(folder: Path, *words: str) -> str:
    named = ("-c", "user.name=n", "-c", "user.email=e@example.com")
    return subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def audited(project: Project) -> Project:
    """Return a git tree with a change that is not committed, and an archive of an audit of it."""
    project.write("helper.py", PLAIN)
    project.write("train.py", SCRIPT)
    project.write("settings.json", '{"seed": 1}')
    project.write(".gitignore", ".detaudit\n*.zip\nweights.txt\n")
    (project.folder / "data").mkdir()
    project.write("data/x.csv", "1,2\n")
    git(project.folder, "init", "-q")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "one")
    project.write("settings.json", '{"seed": 2}')
    project.write("notes.txt", "new")
    done = project.detaudit("run", "train.py", "--runs", "2", "--evidence", "audit.zip", "--out", "out")
    assert done.code == 0, done.err
    assert "evidence: audit.zip" in done.err
    return project


def statement(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as file:
        said: dict[str, Any] = json.loads(file.read("statement.json"))
    return said


def test_an_archive_names_what_was_used_and_tells_what_has_changed(audited: Project) -> None:
    folder = audited.folder
    said = statement(folder / "audit.zip")
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert {one["name"] for one in said["subject"]} == {"results/audit.json", "weights.txt"}
    materials: dict[str, Any] = {one["name"]: one for one in said["predicate"]["materials"]}
    kinds = {name: one["annotations"]["kind"] for name, one in materials.items()}
    assert {name for name, kind in kinds.items() if kind == "code"} == {"helper.py", "train.py"}
    assert {name for name, kind in kinds.items() if kind == "data"} == {"data/x.csv", "settings.json"}
    assert materials["git"]["digest"]["gitCommit"] == git(folder, "rev-parse", "HEAD").strip()
    assert materials["git"]["annotations"]["untracked"] == ["notes.txt"]
    with zipfile.ZipFile(folder / "audit.zip") as file:
        diff = file.read("results/source.diff").decode()
    assert '+{"seed": 2}' in diff
    assert materials["msgspec"]["annotations"]["record"]

    checked = audited.detaudit("verify", "audit.zip")
    assert (checked.code, checked.err) == (0, "")
    assert "deterministic, judged again from its logs" in checked.out
    assert audited.detaudit("verify", "audit.zip", "--rerun").code == 0

    assert audited.detaudit("verify", "audit.zip", "--archive-only", "--format", "json").json["changed"] is None

    audited.write("settings.json", '{"seed": 3}')
    audited.write("helper.py", "import added\n" + dedent(PLAIN))
    audited.write("added.py", "")
    checked = audited.detaudit("verify", "audit.zip", "--rerun")
    assert checked.code == 1
    for text in (
        "changed: code: helper.py has changed",
        "changed: code: added.py is new: the rerun loaded it",
        "changed: data: settings.json has changed",
        "changed: git: the tree has other changes",
        "rerun: different",
    ):
        assert text in checked.out
    assert "edited:" not in checked.out
    assert "its code is not that of the archive: helper.py" in checked.err


@pytest.mark.full
def test_a_verification_as_json(audited: Project) -> None:
    audited.write("helper.py", dedent(PLAIN) + "EXTRA = 1\n")
    checked = audited.detaudit("verify", "audit.zip", "--rerun", "--format", "json")
    assert (checked.code, checked.json["kind"], checked.json["verdict"]) == (1, "verify", "deterministic")
    assert checked.json["edited"] == []
    (file,) = (one for one in checked.json["changed"] if one["kind"] == "file-changed" and one["material"] == "code")
    assert (file["name"], file["sha256_now"]) == (
        "helper.py",
        hashlib.sha256((audited.folder / "helper.py").read_bytes()).hexdigest(),
    )
    (rerun,) = checked.json["reruns"]
    assert (rerun["verdict"], rerun["code_changed"]) == ("identical", ["helper.py"])
    audited.write("helper.py", "raise SystemExit(3)\n")
    (rerun,) = audited.detaudit("verify", "audit.zip", "--rerun", "--format", "json").json["reruns"]
    assert rerun["verdict"] is None


@pytest.mark.parametrize("words", [("--rerun", "--archive-only"), ("--", "python", "train.py")])
def test_options_of_verify_that_say_nothing_together(project: Project, words: tuple[str, ...]) -> None:
    refused = project.detaudit("verify", "audit.zip", *words)
    assert (refused.code, "hint:" in refused.err) == (2, True)


def test_archives_of_one_audit_are_equal_wherever_they_are_made(audited: Project, tmp_path: Path) -> None:
    other = tmp_path / "another" / "machine"
    shutil.copytree(audited.folder / "out", other / "copy")
    elsewhere = Project(other)
    done = elsewhere.detaudit("evidence", "copy", "-o", "again.zip", env={"TZ": "Asia/Tokyo", "LANG": "C"})
    assert done.code == 0, done.err
    assert (other / "again.zip").read_bytes() == (audited.folder / "audit.zip").read_bytes()


def test_an_archive_names_the_commit_of_its_folder_also_where_a_hook_of_another_repository_called(
    audited: Project, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "another")
    env = {"GIT_DIR": str(tmp_path / ".git")}
    assert audited.detaudit("run", "train.py", "--runs", "2", "--evidence", "hook.zip", env=env).code == 0
    (materials,) = (
        one for one in statement(audited.folder / "hook.zip")["predicate"]["materials"] if one["name"] == "git"
    )
    assert materials["digest"]["gitCommit"] == git(audited.folder, "rev-parse", "HEAD").strip()


def test_what_is_hashed_after_the_audit_is_marked(project: Project, unseeded: str) -> None:
    assert project.detaudit("run", unseeded, "--runs", "2", "--out", "out").code == 1
    assert project.detaudit("evidence", "out", "-o", "late.zip").code == 0
    said = statement(project.folder / "late.zip")["predicate"]
    assert said["packagesHashed"] == "later"
    assert said["verdict"]["verdict"] == "nondeterministic"
    checked = project.detaudit("verify", "late.zip")
    assert (checked.code, "nondeterministic, judged again" in checked.out) == (0, True)


def test_nothing_that_an_archive_names_is_run_unless_it_is_of_the_project(project: Project) -> None:
    project.write("helper.py", PLAIN)
    command = ("--", sys.executable, "-c", "import helper; helper.train(seed=1)")
    assert project.detaudit("run", "--runs", "2", "--evidence", "audit.zip", *command).code == 0
    refused = project.detaudit("verify", "audit.zip", "--rerun")
    assert refused.code == 2
    assert "is no script or module of this project" in refused.err
    assert project.detaudit("verify", "audit.zip", "--rerun", *command).code == 0


@pytest.mark.slow
def test_a_comparison_and_a_check_have_archives_too(project: Project, seeded: str) -> None:
    for name in ("a", "b"):
        assert project.detaudit("run", seeded, "--runs", "1", "--out", name).code == 125
    assert project.detaudit("compare", "a", "b", "--evidence", "compare.zip").code == 0
    checked = project.detaudit("verify", "compare.zip")
    assert checked.code == 0, checked.out
    assert "identical, judged again from its logs" in checked.out
    assert project.detaudit("compare", "a", "b", "--until", "2", "--evidence", "narrow.zip").code == 0
    checked = project.detaudit("verify", "narrow.zip")
    assert (checked.code, "the comparison: it was narrowed by --until" in checked.out) == (0, True), checked.out
    project.write("detaudit.yaml", f"audits:\n  one:\n    command: {seeded}\n    runs: 2\n    baseline: false\n")
    assert project.detaudit("check", "--evidence", "check.zip").code == 0
    checked = project.detaudit("verify", "check.zip")
    assert checked.code == 0, checked.out
    assert "passed, judged again from its logs" in checked.out


def test_an_archive_is_refused_before_the_runs_if_it_cannot_be_written(project: Project, seeded: str) -> None:
    for name in ("audit.tar", "missing/audit.zip"):
        refused = project.detaudit("run", seeded, "--evidence", name)
        assert refused.code == 2, refused.err
    assert not (project.folder / ".detaudit").exists()
    (project.folder / "no.zip").write_text("text")
    refused = project.detaudit("verify", "no.zip")
    assert (refused.code, "is not a zip file" in refused.err) == (2, True)
