"""Earlier audits as evidence, with the real command: a rare difference, what changed since, and what runs read."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Finished, Project

RARE = """
    import os
    from training import train

    before = os.environ["BEFORE"]
    number = 1
    while True:
        try:
            os.mkdir(f"{before}/{number}")
            break
        except FileExistsError:
            number += 1
    open("rates.csv").read()
    train(seed=number if number % 4 == 0 else 0)
"""
"""Differs in one run of four, also where runs start at once: what it counts by is no file of its folder."""

Run = Callable[..., Finished]


def packages_of(project: Project) -> Path:
    """Return where a package is installed for the runs, outside of what is copied."""
    return project.folder.with_name(f"{project.folder.name}-env") / "site-packages"


@pytest.fixture
def rare(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return what audits the script, so many runs of which were before."""
    project.write("train.py", RARE)
    project.write("rates.csv", "0.1")
    packages = packages_of(project)
    (packages / "numbers-1.0.dist-info").mkdir(parents=True)

    folder = tmp_path_factory.mktemp("before") / "runs"

    def audit(*words: str, before: int = 0) -> Finished:
        shutil.rmtree(folder, ignore_errors=True)
        for number in range(before + 1):
            (folder / str(number) if number else folder).mkdir()
        env = {"BEFORE": str(folder), "PYTHONPATH": os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])}
        return project.detaudit(*(words or ("run", "train.py", "--runs", "3")), "--format", "json", env=env)

    return audit


def group(done: Finished) -> dict[str, Any]:
    (found,) = done.json["groups"]
    assert isinstance(found, dict)
    return found


def folder_of(done: Finished) -> str:
    (step,) = (one for one in done.json["next_steps"] if one["purpose"] == "print-again")
    return str(step["command"].split()[-1])


@pytest.mark.full
def test_a_rare_difference_makes_later_matches_inconclusive(project: Project, rare: Run) -> None:
    assert [rare(before=before).code for before in (0, 3)] == [0, 1]
    done = rare()
    reason = group(done)["reason"]
    assert (done.code, reason["kind"], reason["runs"], reason["differing"]) == (125, "earlier-runs-differ", 6, 1)
    (folder,) = reason["folders"]
    assert (project.folder / folder / "audit.json").is_file()
    assert rare("run", "train.py", "--runs", "3", "--no-history").code == 0
    assert [rare(word, "train.py", "--runs", "2").code for word in ("trace", "fix")] == [125, 125]
    project.write("train.py", RARE + "    # edited\n")
    assert rare().code == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("change", "exit_code"),
    [("rates.csv", 0), ("training.py", 0), ("env", 0), ("notes.txt", 125), ("elsewhere", 0)],
)
def test_only_audits_of_the_same_training_count(project: Project, rare: Run, change: str, exit_code: int) -> None:
    assert rare(before=3).code == 1
    path = project.folder / change
    if change == "env":
        (packages_of(project) / "numbers-1.0.dist-info").rename(packages_of(project) / "numbers-1.1.dist-info")
    elif change == "elsewhere":
        (project.folder / ".detaudit").rename(path)
    else:
        path.write_text((path.read_text() if path.exists() else "") + "\n")
    assert rare().code == exit_code


@pytest.mark.full
def test_matching_runs_of_earlier_audits_are_counted(project: Project, rare: Run) -> None:
    first = folder_of(rare())
    rare("run", "train.py", "--runs", "2", "--recipe", "seeds")
    rare("bisect", "train.py")
    found = group(rare())
    assert [(one["folder"], one["runs"], one["differing"]) for one in found["earlier"]] == [(first, 3, 0)]
    assert found["confidence"]["max_differing_rate"] == pytest.approx(1 - 0.05 ** (1 / 5))


@pytest.mark.slow
def test_runs_at_once_are_another_training(project: Project, rare: Run) -> None:
    assert rare(before=3).code == 1
    at_once = ("run", "train.py", "--runs", "2", "--jobs", "2")
    assert [rare(*at_once).code for _ in range(2)] == [0, 0]


@pytest.mark.slow
def test_a_check_takes_earlier_audits_in_too(project: Project, rare: Run) -> None:
    config = "[tool.detaudit.audits.small]\ncommand = 'train.py'\nruns = 2\nbaseline = false\n"
    project.write("pyproject.toml", config)
    assert rare(before=3).code == 1
    assert [rare("check").code, rare("check", "--no-history").code] == [125, 0]
    project.write("pyproject.toml", config + "history = false\n")
    assert rare("check").code == 0


READS = """
    import os, pathlib, tempfile
    from training import train

    os.makedirs("data", exist_ok=True)
    open("a.csv").read()
    pathlib.Path("b.csv").read_bytes()
    os.close(os.open("c.csv", os.O_RDONLY))
    for name in ("missing.yaml", "../missing.yaml"):
        try:
            open(name)
        except OSError:
            pass
    with open("metrics.json", "w") as file:
        file.write("{}")
    open("metrics.json").read()
    with tempfile.NamedTemporaryFile("w") as file:
        open(file.name).read()
    open(__file__).read()
    os.chdir("data")
    open("a.csv").read()
    train(seed=0)
"""


def test_what_runs_read_is_noted_with_its_digest(project: Project) -> None:
    project.write("train.py", READS)
    for name in ("a.csv", "b.csv", "c.csv", "data/a.csv"):
        project.write(name, name)
    done = project.detaudit("run", "train.py", "--runs", "2", "--format", "json")
    data = done.json["data"]
    outside = str(Path(project.folder.resolve().parent, "missing.yaml"))
    texts = {name: text for name, text in data.items() if name != outside}
    assert {*texts} == {"a.csv", "b.csv", "c.csv", "data/a.csv", "missing.yaml"}
    assert {name for name, text in texts.items() if len(text) == 64} == {*texts} - {"missing.yaml"}
    assert {*done.json["code"]} == {"train.py", "training.py"}
    assert len(done.json["installed"]) == 64


def test_of_more_files_than_are_noted_nothing_is_known(project: Project) -> None:
    project.write(
        "train.py",
        """
        import contextlib
        from training import train

        for number in range(10_001):
            with contextlib.suppress(OSError):
                open(f"{number}.png")
        train(seed=0)
        """,
    )
    done = project.detaudit("run", "train.py", "--runs", "2", "--format", "json")
    assert (done.code, done.json["data"]) == (0, None)


@pytest.mark.slow
def test_a_variable_that_the_script_reads_is_part_of_the_training(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os, random
        from training import train
        train(seed=int(os.environ.get("OWN_SEED") or random.SystemRandom().randrange(10**6)))
    """,
    )
    assert project.detaudit("run", "train.py", "--runs", "3").code == 1
    for terminal, said in (("one", "3 runs would catch"), ("another", "6 runs, 3 of them in earlier audits")):
        done = project.detaudit("run", "train.py", "--runs", "3", env={"OWN_SEED": "7", "SSH_CONNECTION": terminal})
        assert (done.code, said in done.out) == (0, True), done.out
