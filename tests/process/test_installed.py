"""The wheel, installed in an environment and used in a folder outside of the repository, beside other plugins."""

import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]


def build(folder: Path) -> Path:
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([*words, str(ROOT)], cwd=folder, env=env, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own, with the wheel, and with what this one has but for the repository."""
    folder = tmp_path_factory.mktemp("other é") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/*/site-packages"))
    zipfile.ZipFile(wheel).extractall(packages)
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    return folder / "bin" / "python"


def run(python: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "COV"))}
    return subprocess.run([str(python), *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def test_the_wheel_holds_the_package_and_the_configs_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = [path for path in (ROOT / "detaudit").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    configs = [path for path in (ROOT / "configs").rglob("*") if path.is_file()]
    expected = {path.relative_to(ROOT).as_posix() for path in package}
    expected |= {f"detaudit/{path.relative_to(ROOT).as_posix()}" for path in configs}
    assert names == expected
    assert {"detaudit/configs/flags/torch.yaml", "detaudit/recorder/bootstrap/sitecustomize.py"} <= names
    assert {Path(name).suffix for name in names} <= {".py", ".yaml", ".json", ".md", ".typed", ".html", ".css", ".js"}


def test_the_wheel_is_the_same_bit_for_bit(wheel: Path, tmp_path: Path) -> None:
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, build(tmp_path)))
    assert first == second


MARKED = """
    import random
    import numpy as np
    import pytest
    import sklearn

    @pytest.mark.deterministic(runs=2)
    def test_equal():
        return {"a": np.arange(3.0), "b": 2}

    @pytest.mark.deterministic(runs=2)
    def test_unseeded():
        return np.random.default_rng().normal(size=3)

    @pytest.mark.deterministic(runs=2)
    def test_what_a_plugin_seeds():
        return random.random()
"""


@pytest.mark.parametrize("options", [(), ("-n", "2", "-p", "randomly")], ids=["alone", "beside other plugins"])
def test_the_mark_compares_what_is_returned(python: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_user.py").write_text(dedent(MARKED))
    plugins = () if options else ("-p", "no:randomly", "-p", "no:xdist")
    done = run(python, "-m", "pytest", "-q", *plugins, *options, cwd=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "2 failed" in done.stdout
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert all("test_equal" not in line for line in failed)
    assert "returned" in done.stdout


def test_the_command_runs_from_the_wheel(python: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import random\nimport detaudit\ndetaudit.record(loss=random.random())\n")
    done = run(python, "-m", "detaudit", "run", "train.py", "--runs", "2", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "nondeterministic" in done.stdout
