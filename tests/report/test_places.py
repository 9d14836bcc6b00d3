"""The audited file, and paths relative to the repository."""

from pathlib import Path

import pytest

from detaudit.report.findings import in_repository, script_of


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run train.py --runs 3", "train.py"),
        ("run --recipe all src/train.py -- other.py", "src/train.py"),
        ("run -m pkg.train -- --config c.py", "pkg/train.py"),
        ("run --runs 2 -- torchrun --nproc-per-node 3 train.py --lr 1", "train.py"),
        ("run -- python -m pkg.train", "pkg/train.py"),
        ("run -- ./launch.sh --fast", "./launch.sh"),
        ("check digits", None),
        ("run -m", None),
        ("run --", None),
    ],
)
def test_the_script_of_a_command(words: str, expected: str | None) -> None:
    assert script_of(("detaudit", *words.split())) == expected


def test_a_path_is_relative_to_the_root_of_its_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "repo" / "src")
    assert in_repository("train.py") == "src/train.py"
    assert in_repository("./pkg/../train.py") == "src/train.py"
    assert in_repository("../other.py") == "other.py"
    assert in_repository(str(tmp_path / "repo" / "a.py")) == "a.py"
    assert in_repository("/elsewhere/a.py") == "/elsewhere/a.py"


def test_without_a_repository_a_path_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert in_repository("./train.py") == "train.py"
