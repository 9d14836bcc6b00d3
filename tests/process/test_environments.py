"""Two environments: real Pythons with packages of their own, on top of those of the tests."""

import sys
import zipfile
from pathlib import Path

import pytest

from tests.environments.measure import environment, wheel
from tests.process.conftest import Finished, Project

TRAIN = """
import detaudit
import small

w = [1.0, 2.0, 3.0]
for step in range(3):
    rate = 0.1 * (step + 1)
    w = [one - rate * one for one in w]
    update = small.scaled(sum(w))
    w = [one + update for one in w]
    detaudit.record(loss=sum(w), weights=w)
"""


def python(project: Project, name: str, version: str, factor: str) -> str:
    """Return the Python of a new environment that has a version of the package ``small``."""
    own = environment(project.folder.parent / name)
    text = f"def scaled(x):\n    return x * ({factor})\n"
    with zipfile.ZipFile(wheel(project.folder.parent / "wheels", "small", text, version)) as archive:
        archive.extractall(own)
    return str(own.parents[2] / "bin" / "python")


@pytest.fixture
def pythons(project: Project) -> tuple[str, ...]:
    """Options that name two environments, which differ in one package."""
    project.write("train.py", TRAIN)
    of_both = python(project, "old", "1.0", "1 / 3"), python(project, "new", "2.0", "0.3333")
    return tuple(word for one in of_both for word in ("--python", one))


def compare(project: Project, *words: str) -> Finished:
    return project.detaudit("compare", "train.py", "--runs", "2", "--format", "json", *words)


def test_the_line_and_the_package_that_differ_are_named(project: Project, pythons: tuple[str, ...]) -> None:
    done = compare(project, *pythons, "--trace")
    report = done.json
    assert (done.code, report["verdict"], report["doubts"]) == (1, "different", [])
    assert report["environment_changes"] == [{"name": "small", "a": "1.0", "b": "2.0"}]
    parting = report["parting"]
    assert parting["apart"] == "variable"
    assert (parting["a"]["operation"], parting["a"]["line"]) == ("small.scaled, sum", 9)
    assert (parting["package"]["name"], parting["package"]["versions"]) == ("small", ["1.0", "2.0"])
    assert not list((project.folder / ".detaudit").glob("*/tree*"))


def test_the_same_packages_are_said_to_be_the_same(project: Project, pythons: tuple[str, ...]) -> None:
    same = python(project, "same", "1.0", "1 / 3")
    done = compare(project, *pythons[:2], "--python", same, "--trace")
    assert (done.code, done.json["verdict"], done.json["environment_changes"]) == (0, "identical", [])
    assert [one["kind"] for one in done.json["warnings"]] == ["same-packages"]


def test_a_training_in_another_environment_is_no_verdict(project: Project, pythons: tuple[str, ...]) -> None:
    project.write("real.py", TRAIN.replace("import small", "import numpy").replace("small.scaled", "float"))
    project.write("train.py", f"import subprocess\nsubprocess.run([{sys.executable!r}, 'real.py'], check=True)\n")
    done = compare(project, *pythons)
    assert (done.code, done.json["verdict"]) == (125, "inconclusive")
    assert {one["kind"] for one in done.json["doubts"]} == {"other-environment"}


def test_a_script_that_one_environment_cannot_run_is_no_verdict(project: Project, pythons: tuple[str, ...]) -> None:
    bare = environment(project.folder.parent / "bare")
    done = project.detaudit("compare", "train.py", *pythons[:2], "--python", str(bare.parents[2] / "bin" / "python"))
    assert done.code == 125
    assert "No module named 'small'" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--python", "python3", "--python", "python3"), "both environments are python3"),
        (("--requirements", "train.py"), "two environments are compared, not 1 --requirements"),
        (("--python", "a", "--python", "b", "--python", "c"), "two environments are compared, not 3"),
        (("--python", "python3", "--python", "nothing-like-it"), "command not found"),
        (("--python", "python3", "--python", "/bin/false"), "not a working Python"),
        (("--python", "python3"), "neither --against nor a second environment"),
        (("--requirements", "a.txt", "--requirements", "b.txt", "--against", "HEAD"), "--against compares two commits"),
        (("--requirements", "a.txt", "--requirements", "b.txt", "--evidence", "x.zip"), "--evidence archives"),
    ],
)
def test_what_names_no_two_environments_is_a_usage_error(
    project: Project, words: tuple[str, ...], message: str
) -> None:
    project.write("train.py", TRAIN)
    done = project.detaudit("compare", "train.py", *words)
    assert done.code == 2
    assert message in done.err
    assert "hint: " in done.err
    assert not Path(project.folder, ".detaudit").exists()
