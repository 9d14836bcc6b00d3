from pathlib import Path

import pytest

from detaudit.config import project
from detaudit.errors import ConfigError, NothingToAuditError, UnknownNameError

TOML = """
[tool.detaudit.audits.digits]
command = "train.py --epochs 3"
runs = 4
no-flags = ["torch-seed"]
env = {OMP_NUM_THREADS = "2"}
[tool.detaudit.audits.other]
command = ["-m", "package.train", "a b"]
"""
YAML = """
audits:
  digits:
    command: torchrun --nproc-per-node 3 train.py
    loss-tolerance: 1.0e-4
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_project_is_read_from_pyproject(tmp_path: Path) -> None:
    path = written(tmp_path, "pyproject.toml", TOML)
    assert project.find(tmp_path) == path
    audits = project.read(path)
    assert (audits["digits"].runs, audits["digits"].no_flags, audits["other"].runs) == (4, ("torch-seed",), 3)
    assert project.words(audits["digits"].command) == (("train.py",), ("--epochs", "3"), "")
    assert project.words(audits["other"].command) == ((), ("a b",), "package.train")
    assert list(project.select(audits, ["other"])) == ["other"]
    assert list(project.select(audits, [])) == ["digits", "other"]


def test_detaudit_yaml_takes_precedence(tmp_path: Path) -> None:
    written(tmp_path, "pyproject.toml", TOML)
    path = written(tmp_path, "detaudit.yaml", YAML)
    assert project.find(tmp_path) == path
    audit = project.read(path)["digits"]
    assert project.words(audit.command) == ((), ("torchrun", "--nproc-per-node", "3", "train.py"), "")
    assert audit.loss_tolerance == 1e-4


@pytest.mark.parametrize("text", ["", "[tool.ruff]\n"])
def test_a_pyproject_without_our_table_has_no_audits(tmp_path: Path, text: str) -> None:
    written(tmp_path, "pyproject.toml", text)
    with pytest.raises(NothingToAuditError, match=r"no detaudit\.yaml, and no \[tool\.detaudit\]"):
        project.find(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("detaudit.yaml", YAML + "    runs: three\n", r"detaudit\.yaml:6:11: Expected `int`, got `str`"),
        ("detaudit.yaml", YAML + "    rnus: 3\n", r"detaudit\.yaml:6:5: .*`rnus`"),
        ("detaudit.yaml", "audits: {", r"detaudit\.yaml:1:10: "),
        ("detaudit.yaml", "audits: {}", "length >= 1"),
        ("pyproject.toml", TOML + "runs = 0\n", r"pyproject\.toml:9:8: .*>= 1"),
        ("pyproject.toml", TOML + "rnus = 3\n", r"pyproject\.toml:9:1: .*`rnus`"),
        ("pyproject.toml", TOML + "seed = [\n" + "1,\n" * 999 + "]", r", tool\.detaudit\.audits\.other\.seed: "),
        ("pyproject.toml", "\n[tool.detaudit]\n", r"pyproject\.toml:2:1: .*missing required field `audits`"),
        ("pyproject.toml", "[tool.detaudit\n", r"pyproject\.toml:1:15: "),
    ],
)
def test_invalid_contents_are_reported_with_their_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        project.read(written(tmp_path, name, text))


@pytest.mark.parametrize(
    ("name", "text"), [("detaudit.yaml", YAML + "    rnus: 3\n"), ("pyproject.toml", TOML + "rnus = 3\n")]
)
def test_an_unknown_key_gets_the_nearest_as_a_hint(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        project.read(written(tmp_path, name, text))
    assert error.value.hint == "Did you mean 'runs'?"


def test_an_unknown_name_gets_the_nearest_as_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as error:
        project.select(project.read(written(tmp_path, "pyproject.toml", TOML)), ["digit"])
    assert "'digits'" in error.value.hint


def test_unbalanced_quotes_are_an_error() -> None:
    with pytest.raises(ConfigError, match="cannot parse command"):
        project.words('train.py "a')
