"""Find the Python that runs the training if the user names none.

Installed as a tool, as uvx and pipx do, detaudit has an environment of its own, in which no framework is installed. The
user then means the Python that ``python train.py`` would start, or that of the project.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from detaudit.launch.workspace import repository_root

_FRAMEWORKS = ("torch", "tensorflow", "jax", "sklearn", "xgboost", "lightgbm", "catboost")
"""One of them is installed where detaudit was installed beside a training. NumPy says nothing: h5py brings it."""


def training_python(cwd: Path) -> str:
    """Return the Python that runs a training in ``cwd``, as an absolute path if it is not detaudit's own.

    It is the first of: detaudit's own, unless detaudit is installed as a tool; that of the active environment; that of
    ``.venv`` in ``cwd`` or in a folder around it up to the root of its repository; ``python`` on PATH.
    """
    if not is_tool():
        return sys.executable
    return (*_of_project(cwd), *_on_path(), sys.executable)[0]


def other_python(cwd: Path, python: str) -> str:
    """Return the Python of the active environment or of ``.venv`` if that is a different one, else ``""``."""
    own = os.path.realpath(os.path.dirname(python))
    return next((other for other in _of_project(cwd) if os.path.realpath(os.path.dirname(other)) != own), "")


def is_tool() -> bool:
    """Return whether detaudit's own Python is not meant to run a training.

    It is if a framework is installed there, or its environment is active, or it was named: ``python -m detaudit``. What
    is installed for a whole system is there in each environment too, so it does not count while one is active.
    """
    active = _active(os.environ)
    if Path(sys.argv[0]).name == "__main__.py" or (active and os.path.realpath(active) == os.path.realpath(sys.prefix)):
        return False
    return (bool(active) and not _is_virtual()) or not any(map(find_spec, _FRAMEWORKS))


def pytest_without_plugin(command: Sequence[str]) -> str:
    """Return the Python of a pytest that a command starts and that has no detaudit, ``""`` if there is none.

    Nobody honors the marks of its tests then. ``""`` also if its packages are not where they are expected.
    """
    program = Path(command[0]).name if command else ""
    if program in ("pytest", "py.test"):
        python = _shebang(which(command[0]) or "")
    elif program.startswith("python") and tuple(command[1:3]) == ("-m", "pytest"):
        python = which(command[0]) or ""
    else:
        return ""
    packages = list(Path(python).parent.parent.glob("lib/python*/site-packages")) if python else []
    has_pytest = any(any(folder.glob("pytest-*.dist-info")) for folder in packages)
    return python if has_pytest and not any(any(folder.glob("detaudit-*.dist-info")) for folder in packages) else ""


def _shebang(script: str) -> str:
    """Return the interpreter in the first line of a script, ``""`` if there is none."""
    try:
        with open(script, "rb") as file:
            first = file.readline(300).decode(errors="replace").strip()
    except OSError:
        return ""
    return first.removeprefix("#!").split(" ")[0] if first.startswith("#!") else ""


def outer_environment() -> dict[str, str]:
    """Return the environment variables without what makes the tool's own programs hide others: uvx extends PATH."""
    env = dict(os.environ)
    if "PATH" in env and _is_virtual() and is_tool():
        own = os.path.realpath(sysconfig.get_path("scripts"))
        folders = env["PATH"].split(os.pathsep)
        env["PATH"] = os.pathsep.join(folder for folder in folders if os.path.realpath(folder) != own)
    return env


def which(program: str) -> str | None:
    """Return the path of a program as a shell finds it, None if there is none."""
    return shutil.which(program, path=outer_environment().get("PATH"))


def _is_virtual() -> bool:
    return sys.prefix != sys.base_prefix


def _active(env: Mapping[str, str]) -> str:
    """Return the folder of the active environment, ``""`` if there is none; conda's base is active in every shell."""
    conda = "" if env.get("CONDA_DEFAULT_ENV") in ("base", "root") else env.get("CONDA_PREFIX", "")
    return env.get("VIRTUAL_ENV") or conda


def _venvs(cwd: Path) -> Iterator[str]:
    root = repository_root(cwd)
    for folder in (cwd, *cwd.parents):
        yield str(folder / ".venv")
        if folder == root:
            return


def _of_project(cwd: Path) -> Iterator[str]:
    folders = filter(None, [_active(os.environ), *_venvs(cwd)])
    yield from filter(None, (shutil.which(os.path.join(folder, "bin", "python")) for folder in folders))


def _on_path() -> Iterator[str]:
    """Yield what ``python`` is in a shell. What is installed for a whole system is that itself."""
    if _is_virtual():
        yield from filter(None, map(which, ("python", "python3")))
