"""``git bisect run detaudit run`` finds the commit that broke determinism, in a history that git itself made."""

import os
import subprocess
import sys

import pytest

from tests.process.conftest import Project

SCRIPT = """
    import numpy, detaudit

    generator = numpy.random.default_rng({seed})
    weights = generator.normal(size=({size}, 1))
    for step in range({steps}):
        inputs = generator.normal(size=(16, {size}))
        error = inputs @ weights - inputs.sum(1, keepdims=True)
        weights = weights - {rate} * inputs.T @ error / 16
        detaudit.record(loss=float((error**2).mean()), weights=weights)
"""

HISTORY: dict[str, dict[str, object]] = {
    "Train": {"seed": 0, "size": 4, "steps": 3, "rate": 0.1},
    "Train longer": {"steps": 5},
    "A wider model": {"size": 6},
    "A lower rate": {"rate": 0.05},
    "Half of a refactoring": {"size": "WIDTH"},
    "The other half": {"size": 6},
    "Tidy up": {"seed": ""},
    "A higher rate": {"rate": 0.2},
    "Train shorter": {"steps": 4},
}
"""What each commit changes; ``Tidy up`` loses the seed, and ``Half of a refactoring`` does not run."""


class Repository:
    """A git repository, out of reach of the user's own settings."""

    def __init__(self, project: Project) -> None:
        self.project = project
        outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        person = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.env = {**outside, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.project.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commit(self, message: str, settings: dict[str, object]) -> None:
        self.project.write("train.py", SCRIPT.format(**settings))
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


@pytest.fixture
def repository(project: Project) -> Repository:
    repository = Repository(project)
    settings: dict[str, object] = {}
    for message, changes in HISTORY.items():
        settings |= changes
        repository.commit(message, settings)
    return repository


def test_git_bisect_finds_the_commit_that_broke_determinism(repository: Repository) -> None:
    repository.git("bisect", "start", "HEAD", "HEAD~8")
    printed = repository.git("bisect", "run", sys.executable, "-m", "detaudit", "run", "--runs", "3", "train.py")
    assert "is the first bad commit" in printed
    assert repository.git("log", "-1", "--format=%s", "refs/bisect/bad") == "Tidy up\n"
    skipped = repository.git("for-each-ref", "--format=%(subject)", "refs/bisect/skip-*")
    assert skipped == "Half of a refactoring\n"
    assert repository.git("status", "--porcelain") == ""
