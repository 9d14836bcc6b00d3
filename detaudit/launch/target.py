"""What to run, and by which Python."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from detaudit import redact
from detaudit.config.yamlfile import nearest
from detaudit.errors import UnknownNameError, UsageError
from detaudit.launch.workspace import repository_root
from detaudit.notebooks import cells
from detaudit.notebooks.cells import SUFFIX, is_notebook
from detaudit.wire import FRAMEWORKS

# Find the Python that runs the training if the user names none.
#
# Installed as a tool, as uvx and pipx do, detaudit has an environment of its own, in which no framework is installed.
# The user then means the Python that ``python train.py`` would start, or that of the project.


_TRAINING = tuple(name for name, framework in FRAMEWORKS.items() if framework.hooks)
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
    return (bool(active) and not _is_virtual()) or not any(map(find_spec, _TRAINING))


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


# Resolve what to run: a script, a module, or a whole command.


@dataclass(frozen=True)
class Target:
    """What to run. Exactly one of ``script`` and ``module`` is set, or neither for a command.

    ``python_found``: the user did not name ``python``, and it is not detaudit's own.
    """

    arguments: tuple[str, ...]
    script: str = ""
    module: str = ""
    python: str = sys.executable
    python_found: bool = False

    @property
    def is_command(self) -> bool:
        """Whether it starts its own Python, if any."""
        return not (self.script or self.module)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line of a run."""
        if is_notebook(self.script):
            return (self.python, str(RUNNER), self.script, *self.arguments)
        if self.script:
            return (self.python, self.script, *self.arguments)
        if self.module:
            return (self.python, "-m", self.module, *self.arguments)
        return self.arguments

    @property
    def words(self) -> tuple[str, ...]:
        """The command line without secrets, and without the interpreter, whose path differs between machines."""
        if is_notebook(self.script):
            return redact.command((self.script, *self.arguments))
        return redact.command(self.argv if self.is_command else self.argv[1:])

    @property
    def program(self) -> str:
        """The executable that is started."""
        return which(self.argv[0]) or self.argv[0]

    @property
    def expected_argument(self) -> str:
        """An argument that the training process must have, ``""`` for a command that may start anything.

        An event log proves only that some Python process of the run was recorded: with ``python -I train.py`` this
        may be a helper that the script started.
        """
        if self.script or self.module:
            return self.script or self.module
        if not Path(self.arguments[0]).name.startswith("python"):
            return ""
        rest = list(self.arguments[1:])
        if "-m" in rest[:-1]:
            return rest[rest.index("-m") + 1]
        return next((argument for argument in rest if argument.endswith(".py")), "")


def resolve_target(
    words: tuple[str, ...], after_dashes: tuple[str, ...], module: str, python: str | None, *, here: bool = True
) -> Target:
    """Return the target of ``SCRIPT|-m MODULE [-- ARGS]`` or ``-- COMMAND…``.

    Unless it runs ``here``, programs are those of other machines, and not looked for.
    Raises UsageError for words of any other form, UnknownNameError for a script or program that does not exist.
    """
    if module and words:
        raise UsageError(f"unexpected argument {words[0]!r}", "Put the arguments of the module after `--`.")
    executable = _python(python) if here else python or sys.executable
    python_found = not python and executable != sys.executable
    if module:
        return Target(arguments=after_dashes, module=module, python=executable, python_found=python_found)
    if not words:
        if not after_dashes:
            raise UsageError("nothing to run", "Pass a script, `-m MODULE`, or a whole command after `--`.")
        if python:
            hint = f"Name it in the command, as in: -- {python} train.py"
            raise UsageError("an interpreter was named for a command, which starts its own", hint)
        if here:
            _executable(after_dashes[0])
        return Target(arguments=after_dashes)
    if len(words) > 1:
        extra_arguments = " ".join(words[1:])
        raise UsageError(
            f"unexpected arguments after the script: {extra_arguments}",
            f"Put the arguments of the script after `--`: detaudit run {words[0]} -- {extra_arguments}",
        )
    _check_script(words[0])
    if is_notebook(words[0]):
        _check_notebook(words[0], executable, here)
    return Target(arguments=after_dashes, script=words[0], python=executable, python_found=python_found)


def _python(name: str | None) -> str:
    return _executable(name) if name else training_python(Path.cwd())


def _executable(name: str) -> str:
    path = which(name)
    if path is None and os.sep in name and os.path.isfile(name):
        raise UsageError(f"not executable: {name!r}", f"Run `chmod +x {name}`, or name what runs it.")
    if path is None:
        raise UnknownNameError(f"command not found: {name!r}", "Check the name and your PATH.")
    return path


def _scripts(folder: Path, most: int | None = 8, suffix: str = ".py") -> list[str]:
    return sorted(path.name for path in folder.glob(f"*{suffix}"))[:most]


def _check_script(script: str) -> None:
    path = Path(script)
    if path.is_dir():
        if (path / "__main__.py").exists():
            return
        inside = ", ".join(str(path / name) for name in _scripts(path))
        hint = f"Name one of its scripts: {inside}" if inside else "Name a script, or a folder with a __main__.py."
        raise UnknownNameError(f"{script!r} is a folder without a __main__.py", hint)
    if not path.is_file():
        kind = SUFFIX if is_notebook(script) else ".py"
        near, others = nearest(path.name, _scripts(path.parent, None, kind)), _scripts(path.parent)
        hint = f"Python files in that folder: {', '.join(others)}" if others else "Check the path."
        hint = f"Did you mean {str(path.with_name(near))!r}?" if near else hint
        raise UnknownNameError(f"script not found: {script!r}", hint)
    with path.open("rb") as file:
        first = file.readline(200)
    if first.startswith(b"#!") and b"python" not in first:
        raise UsageError(f"{script!r} is not a Python script", f"Run it as a command: detaudit run -- ./{script}")


RUNNER = Path(__file__).resolve().parent.parent / "notebooks" / "run.py"
"""The program that runs the cells of a notebook."""

_ASK_IPYTHON = "import importlib.util, sys; sys.exit(importlib.util.find_spec('IPython') is None)"


def _check_notebook(notebook: str, python: str, here: bool) -> None:
    """Raise UsageError for a notebook that cannot be run, or that needs an IPython which its Python does not have."""
    try:
        read = cells.read(Path(notebook).read_bytes())
    except cells.NotebookError as error:
        where = f"{notebook} {error.place}: " if error.place else f"{notebook!r} "
        raise UsageError(f"{where}{error}", error.hint) from error
    except OSError as error:
        raise UnknownNameError(f"cannot read {notebook!r}: {error.strerror}", "Check the path.") from error
    if not any(cell.code for cell in read):
        raise UsageError(f"{notebook!r} has no cells with code", "Name a notebook that trains something.")
    magics = [(cell.number, line, cell.lines[line - 1].strip()) for cell in read for line in cell.ipython]
    if not magics or not here or subprocess.run([python, "-c", _ASK_IPYTHON], check=False).returncode == 0:
        return
    number, line, text = magics[0]
    location = cells.location_of(notebook, cells.PER_CELL * number + line)
    raise UsageError(
        f"{location} needs IPython, which {python} does not have: {text}",
        f"Install IPython there, write the line in Python, or give the cell the tag {cells.SKIPPED}.",
    )
