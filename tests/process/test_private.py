"""Results are for the user alone: who may read them, and that they hold no secrets."""

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from detaudit.report import FORMATS
from tests.process.conftest import Project

TO_SHARE = {".gitignore", "detaudit-recipe.yaml"}
"""Files that are made to be committed or passed on."""

WRITES_A_FILE = """
    import training
    training.train()
    open("shared.txt", "w").close()
"""

READS_THE_CLOCK = """
    import time
    import detaudit
    def train(step, mine=None):
        number = time.time_ns() % 997
        detaudit.record(loss=number, weights=[number, step])
    for step in range(2):
        train(step)
"""
"""What differs here is found only by recording lines."""


def modes(folder: Path) -> dict[str, int]:
    """Return the permissions of a folder and of all that is in it."""
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


def open_to_others(folder: Path) -> Iterator[str]:
    """Yield what another user could read, and what its owner could not."""
    for name, mode in modes(folder).items():
        expected = 0o700 if (folder / name).is_dir() else 0o600
        if mode != expected and Path(name).name not in TO_SHARE:
            yield f"{mode:o} {name}"


@pytest.mark.full
@pytest.mark.parametrize("umask", [0o000, pytest.param(0o022, marks=pytest.mark.slow)])
def test_only_the_user_may_read_results(project: Project, umask: int) -> None:
    project.write("train.py", WRITES_A_FILE)
    assert project.detaudit("run", "train.py", "--runs", "2", umask=umask).code == 1
    project.write("clock.py", READS_THE_CLOCK)
    assert project.detaudit("trace", "clock.py", umask=umask).code == 1
    assert project.detaudit("bisect", "train.py", "--confirm", "2", "--flag", "python-random-seed",
                            "--recipe", "none", umask=umask).code == 0  # fmt: skip
    results = project.folder / ".detaudit"
    kept = {path.name.partition(".")[2] for path in results.rglob("*.*")}
    assert kept >= {"json", "log", "0.jsonl", "0.rows", "0.ops", "yaml", "gitignore"}
    assert not list(open_to_others(results))
    shared = 0o666 & ~umask
    assert {mode for name, mode in modes(results).items() if Path(name).name in TO_SHARE} == {shared}
    assert stat.S_IMODE((project.folder / "shared.txt").stat().st_mode) == shared


def test_the_lock_file_is_for_everybody(project: Project, seeded: str) -> None:
    project.write("detaudit.yaml", f"audits:\n  train:\n    command: {seeded}\n    runs: 2\n")
    assert project.detaudit("check", "--update", "--out", "deep/results", umask=0o022).code == 0
    assert stat.S_IMODE((project.folder / "detaudit.lock.json").stat().st_mode) == 0o644
    assert not list(open_to_others(project.folder / "deep"))


def test_results_in_a_folder_that_others_may_read_are_still_private(project: Project, seeded: str) -> None:
    (project.folder / "results").mkdir(mode=0o755)
    os.chmod(project.folder / "results", 0o755)
    assert project.detaudit("run", seeded, "--runs", "2", "--out", "results").code == 0
    assert list(open_to_others(project.folder / "results")) == ["755 ."]


VARIABLE, OPTION, PASSWORD = "hf_planted_in_a_variable", "planted in an option", "planted-in-a-url"
SECRET_WORDS = ("--", "--token", OPTION, f"--url=https://ann:{PASSWORD}@host/data")

HOLDS_SECRETS = """
    import os, subprocess, sys, time
    import detaudit
    assert sys.argv[1:] == {arguments}
    def train(step):
        harmless = os.environ["API_TOKEN"]
        given = sys.argv[2]
        number = time.time_ns() % 997
        detaudit.record(loss=number, weights=[number, step])
    for step in range(2):
        train(step)
    subprocess.run([sys.executable, "-c", "import detaudit; detaudit.record(loss=1)", *sys.argv[1:]], check=True)
    print("refused:", *sys.argv, time.time(), file=sys.stderr)
""".replace("{arguments}", repr([*SECRET_WORDS[1:]]))


def leaks(folder: Path) -> Iterator[str]:
    """Yield the files that hold a planted secret, but for what the script itself prints."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("stdout.log", "stderr.log", "text.json"):
            for secret in (VARIABLE, OPTION, PASSWORD):
                if secret.encode() in path.read_bytes():
                    yield f"{secret} in {path.name}"


@pytest.fixture
def holder(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A script that is given secrets, and repeats them on stderr."""
    monkeypatch.setenv("API_TOKEN", VARIABLE)
    project.write("train.py", HOLDS_SECRETS)
    return project


def test_no_result_holds_a_secret(holder: Project) -> None:
    done = [
        holder.detaudit("run", "train.py", "--runs", "2", "--out", "run", *SECRET_WORDS),
        holder.detaudit("trace", "train.py", "--out", "trace", *SECRET_WORDS),
        *(holder.detaudit("report", "run", "--format", format_) for format_ in FORMATS),
        holder.detaudit("run", "train.py", *SECRET_WORDS[1:]),  # without the dashes
    ]
    assert [one.code for one in done] == [1, 1, *[0] * len(FORMATS), 2]
    assert "--token '***' '--url=https://***@host/data'" in done[0].out
    assert not [secret for one in done for secret in (VARIABLE, OPTION, PASSWORD) if secret in one.out + one.err]
    assert not list(leaks(holder.folder / "run"))
    assert list((holder.folder / "trace").rglob("*.ops"))
    assert not list(leaks(holder.folder / "trace"))


@pytest.mark.full
def test_no_baseline_holds_a_secret(holder: Project) -> None:
    holder.write("train.py", HOLDS_SECRETS.replace("time.time_ns()", "3"))
    holder.write("detaudit.yaml", f"audits:\n  train:\n    command: {['train.py', *SECRET_WORDS[1:]]}\n    runs: 2\n")
    assert holder.detaudit("check", "--update", "--out", "first").code == 0
    assert holder.detaudit("check", "--out", "second").code == 0
    (holder.folder / "detaudit.yaml").unlink()
    (holder.folder / "train.py").unlink()
    assert not list(leaks(holder.folder))


@pytest.mark.full
def test_a_bisection_is_resumed_with_its_secrets(holder: Project) -> None:
    holder.write("train.py", HOLDS_SECRETS.replace("time.time_ns()", "hash(given)"))
    words = ("--confirm", "2", "--recipe", "seeds", "--out", "found")
    assert holder.detaudit("bisect", "train.py", *words, *SECRET_WORDS).code == 0
    kept = holder.folder / "found" / "audit.json"
    whole = json.loads(kept.read_text())
    kept.write_text(json.dumps({**whole, "groups": whole["groups"][:1]}))  # as if it was interrupted
    for group in whole["groups"][1:]:
        shutil.rmtree(holder.folder / "found" / "runs" / group["recipe"]["name"])
    assert not list(leaks(holder.folder / "found"))

    refused = holder.detaudit("bisect", "--resume", "found")
    assert refused.code == 2
    assert "hint: Pass its arguments again, with the secrets: -- --token ***" in refused.err
    assert holder.detaudit("bisect", "--resume", "found", "--", "--token", OPTION).code == 2
    resumed = holder.detaudit("bisect", "--resume", "found", "--format", "json", *SECRET_WORDS)
    assert (resumed.code, resumed.json["outcome"]) == (0, "fixed")
    assert [one["flag"] for one in resumed.json["needed"]] == [one["flag"] for one in whole["needed"]]
    assert not list(leaks(holder.folder / "found"))
