"""The wheel and the sdist, and the wheel in environments outside of the repository: of a training, and of a tool."""

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

from tests import rebuild
from tests.process import environments
from tests.process.conftest import Project

ROOT = Path(__file__).parents[2]


def build(folder: Path, source: Path = ROOT) -> Path:
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([*words, str(source)], cwd=folder, env=env, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own, with the wheel, and with what this one has but for the repository."""
    folder = tmp_path_factory.mktemp("other é") / "venv"
    made = environments.environment(folder)
    zipfile.ZipFile(wheel).extractall(environments.site_packages(folder))
    return made


def run(python: Path, *words: str, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    env = environments.outside(**changes)
    return subprocess.run([str(python), *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def test_the_wheel_holds_the_package_and_the_configs_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = [path for path in (ROOT / "detaudit").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    configs = [path for path in (ROOT / "configs").rglob("*") if path.is_file()]
    expected = {path.relative_to(ROOT).as_posix() for path in package}
    expected |= {f"detaudit/{path.relative_to(ROOT).as_posix()}" for path in configs}
    assert names == expected
    assert {"detaudit/configs/flags/torch.yaml", "detaudit/recorder/bootstrap/sitecustomize.py"} <= names
    assert {Path(name).suffix for name in names} <= {
        ".py",
        ".yaml",
        ".json",
        ".md",
        ".typed",
        ".html",
        ".css",
        ".js",
        ".txt",
    }


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


@pytest.mark.full
def test_the_sdist_holds_the_repository_and_nothing_else(sdist: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    committed, new = (
        subprocess.run(["git", "ls-files", "-z", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for words in ([], ["--others", "--exclude-standard"])
    )
    expected = {name for name in committed.split("\0") if (ROOT / name).is_file()}
    found = {path.relative_to(sdist).as_posix() for path in sdist.rglob("*") if path.is_file()} - {"PKG-INFO"}
    assert expected <= found <= expected | set(new.split("\0"))


@pytest.mark.full
def test_the_wheel_of_the_sdist_is_that_of_the_repository(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, build(tmp_path, sdist)))
    assert first == second


@pytest.mark.full
def test_a_second_build_is_the_same_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1580601600")
    rebuild.build(ROOT, tmp_path / "dist")
    assert rebuild.differing(tmp_path / "dist") == []
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert len(rebuild.differing(tmp_path / "dist")) == 2


@pytest.mark.slow
def test_the_sdist_can_be_tested(sdist: Path) -> None:
    def pytest_in(folder: Path, *words: str) -> str:
        done = run(Path(sys.executable), "-m", "pytest", "-q", *words, cwd=folder, PYTHONPATH=str(folder))
        assert done.returncode == 0, done.stdout
        return done.stdout.splitlines()[-1].partition(" in ")[0]

    # What reads files of the repository, starts it, or asks git.
    files = ("test_benchmarks.py", "test_promises.py", "test_release.py", "test_security.py", "process/test_ci.py")
    pytest_in(sdist, *(f"tests/{name}" for name in files))
    assert pytest_in(sdist, "--collect-only", "-m", "") == pytest_in(ROOT, "--collect-only", "-m", "")


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [(), pytest.param(("-n", "2", "-p", "randomly"), marks=pytest.mark.slow)],
    ids=["alone", "beside other plugins"],
)
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


def test_a_tool_trains_with_the_environment_of_the_project(wheel: Path, project: Project, tmp_path: Path) -> None:
    command = environments.tool(tmp_path / "tool", wheel)
    environments.environment(project.folder / ".venv")
    project.write("train.py", environments.TRAIN)
    done = run(command, "run", "train.py", "--runs", "2", cwd=project.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "training with .venv/bin/python; --python selects a different one\n"
    assert "  detaudit run train.py --runs 2\n" in done.stdout  # which finds that Python again
    assert "--python" not in done.stdout
    printed = next((project.folder / ".detaudit").glob("*/runs/none/1/stdout.log")).read_text()
    assert printed == f"{project.folder / '.venv'}\n"
