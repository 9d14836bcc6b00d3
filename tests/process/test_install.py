"""What ``make dist`` built, installed as people do it, audits trainings in environments of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import interpreters
from tests.process import environments
from tests.process.conftest import Project
from tests.words import same

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.install


@dataclass(frozen=True)
class Tool:
    """A command that was installed, and the variables that its installer needs again."""

    command: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
        env = environments.outside(**{**self.env, **changes})
        return subprocess.run([*self.command, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def built(suffix: str) -> str:
    """Return the one file of ``dist`` with this suffix."""
    (path,) = (ROOT / "dist").glob(f"detaudit-*{suffix}")
    return str(path)


def call(*words: str, **env: str) -> None:
    done = subprocess.run(words, env=environments.outside(**env), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def with_pip(folder: Path, file: str) -> Tool:
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    call(str(folder / "venv" / "bin" / "pip"), "install", "--quiet", file)
    return Tool((str(folder / "venv" / "bin" / "detaudit"),))


def with_pipx(folder: Path) -> Tool:
    names = {"PIPX_HOME": "home", "PIPX_BIN_DIR": "bin", "PIPX_MAN_DIR": "man"}
    env = {name: str(folder / place) for name, place in names.items()}
    call(str(BIN / "pipx"), "install", "--python", sys.executable, built(".whl"), **env)
    return Tool((str(folder / "bin" / "detaudit"),))


def with_uv(folder: Path) -> Tool:
    env = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    call(str(BIN / "uv"), "tool", "install", "--python", sys.executable, built(".whl"), **env)
    return Tool((str(folder / "bin" / "detaudit"),))


def with_uvx(folder: Path) -> Tool:
    words = (str(BIN / "uvx"), "--python", sys.executable, "--from", built(".whl"), "detaudit")
    return Tool(words, {"UV_CACHE_DIR": str(folder / "cache")})


INSTALLERS: dict[str, Callable[[Path], Tool]] = {
    "pip": lambda folder: with_pip(folder, built(".whl")),
    "pip of the sdist": lambda folder: with_pip(folder, built(".tar.gz")),
    "pipx": with_pipx,
    "uv tool install": with_uv,
    "uvx": with_uvx,
}


@pytest.fixture(scope="module", params=INSTALLERS)
def tool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return INSTALLERS[request.param](tmp_path_factory.mktemp("installed"))


@pytest.fixture
def active(tmp_path: Path) -> dict[str, str]:
    """The variables of a shell in which an environment with torch is active, outside of the project."""
    python = environments.environment(tmp_path / "active")
    return {"VIRTUAL_ENV": str(tmp_path / "active"), "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


def python_of(project: Project) -> str:
    """Return the environment that ran the first run of the newest audit, which its script prints."""
    logs = sorted((project.folder / ".detaudit").glob("*/runs/none/1/stdout.log"))
    return logs[-1].read_text().strip()


def test_the_environment_of_the_project_trains(tool: Tool, project: Project) -> None:
    environments.environment(project.folder / ".venv")
    project.write("train.py", environments.TRAIN)
    done = tool("run", "train.py", "--runs", "2", cwd=project.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "training with .venv/bin/python;" in done.stderr
    assert python_of(project) == str(project.folder / ".venv")


def test_the_active_environment_trains_also_if_a_command_starts_it(
    tool: Tool, project: Project, active: dict[str, str]
) -> None:
    project.write("train.py", environments.TRAIN)
    for words in (["train.py"], ["--", "python", "train.py"]):
        done = tool("run", "--runs", "2", *words, cwd=project.folder, **active)
        assert done.returncode == 0, done.stdout + done.stderr
        assert python_of(project) == active["VIRTUAL_ENV"]


def test_a_python_that_is_named_trains(tool: Tool, project: Project, active: dict[str, str]) -> None:
    python = environments.environment(project.folder / "other")
    project.write("train.py", environments.TRAIN)
    done = tool("run", "train.py", "--runs", "2", "--python", str(python), cwd=project.folder, **active)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "training with" not in done.stderr
    assert python_of(project) == str(project.folder / "other")


FIT = """
    import importlib.util
    import sys
    from sklearn.linear_model import SGDClassifier

    assert sys.version_info[:2] == (3, 9)
    assert importlib.util.find_spec("detaudit") is None
    SGDClassifier(random_state=int(sys.argv[1])).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
"""


def test_the_oldest_python_trains(project: Project, tmp_path: Path) -> None:
    python = interpreters.find("3.9")
    if python is None:
        pytest.skip("no Python 3.9 is installed")
    tool = with_pip(tmp_path, built(".whl"))
    subprocess.run([python, "-m", "venv", str(project.folder / ".venv")], check=True)
    call(str(project.folder / ".venv" / "bin" / "pip"), "install", "--quiet", "scikit-learn")
    project.write("train.py", FIT)
    done = tool("run", "train.py", "--runs", "2", "--", "1", cwd=project.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"deterministic: {same()}" in done.stdout
