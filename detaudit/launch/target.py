"""Resolve what to run: a script, a module, or a whole command."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from detaudit import redact
from detaudit.errors import UnknownNameError, UsageError
from detaudit.launch.interpreter import training_python, which
from detaudit.recipe.names import nearest


@dataclass(frozen=True)
class Target:
    """What to run. Exactly one of ``script`` and ``module`` is set, or neither for a command.

    ``python`` was ``found`` if the user did not name it and it is not detaudit's own.
    """

    arguments: tuple[str, ...]
    script: str = ""
    module: str = ""
    python: str = sys.executable
    found: bool = False

    @property
    def is_command(self) -> bool:
        """Whether it starts its own Python, if any."""
        return not (self.script or self.module)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line of a run."""
        if self.script:
            return (self.python, self.script, *self.arguments)
        if self.module:
            return (self.python, "-m", self.module, *self.arguments)
        return self.arguments

    @property
    def words(self) -> tuple[str, ...]:
        """The command line without secrets, and without the interpreter, whose path differs between machines."""
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
    found = not python and executable != sys.executable
    if module:
        return Target(arguments=after_dashes, module=module, python=executable, found=found)
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
        given = " ".join(words[1:])
        raise UsageError(
            f"unexpected arguments after the script: {given}",
            f"Put the arguments of the script after `--`: detaudit run {words[0]} -- {given}",
        )
    _check_script(words[0])
    return Target(arguments=after_dashes, script=words[0], python=executable, found=found)


def _python(name: str | None) -> str:
    return _executable(name) if name else training_python(Path.cwd())


def _executable(name: str) -> str:
    found = which(name)
    if found is None:
        raise UnknownNameError(f"command not found: {name!r}", "Check the name and your PATH.")
    return found


def _scripts(folder: Path, most: int | None = 8) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py"))[:most]


def _check_script(script: str) -> None:
    path = Path(script)
    if path.is_dir():
        if (path / "__main__.py").exists():
            return
        inside = ", ".join(str(path / name) for name in _scripts(path))
        hint = f"Name one of its scripts: {inside}" if inside else "Name a script, or a folder with a __main__.py."
        raise UnknownNameError(f"{script!r} is a folder without a __main__.py", hint)
    if not path.is_file():
        near, others = nearest(path.name, _scripts(path.parent, None)), _scripts(path.parent)
        hint = f"Python files in that folder: {', '.join(others)}" if others else "Check the path."
        hint = f"Did you mean {str(path.with_name(near))!r}?" if near else hint
        raise UnknownNameError(f"script not found: {script!r}", hint)
    if path.suffix == ".ipynb":
        made = shlex.quote(str(path.with_suffix(".py")))
        hint = f"Convert it: jupyter nbconvert --to script {shlex.quote(script)}, then: detaudit run {made}"
        raise UsageError(f"{script!r} is a notebook, and detaudit runs scripts", hint)
    with path.open("rb") as file:
        first = file.readline(200)
    if first.startswith(b"#!") and b"python" not in first:
        raise UsageError(f"{script!r} is not a Python script", f"Run it as a command: detaudit run -- ./{script}")
