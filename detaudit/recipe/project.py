"""What a project has written down to be checked: [tool.detaudit] in pyproject.toml, or detaudit.yaml."""

import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from detaudit.errors import ConfigError, UnknownNameError
from detaudit.recipe import yamlfile
from detaudit.recipe.names import unknown
from detaudit.recipe.recipes import MAX_SEED

FILES = ("detaudit.yaml", "pyproject.toml")
"""Where a project is looked for, in this order."""

Policy = Literal["fail", "warn", "rebase"]
"""What becomes of a check against a baseline from another environment; ``rebase`` takes the new one as the baseline."""

_CURE = "docs/ci.md tells what may stand there."

Command = Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]


class NamedAudit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One audit that a project has named.

    ``command`` is a script with its arguments, ``-m MODULE`` with them, or a whole command. ``timeout`` is in seconds.
    ``loss-tolerance`` is relative: how far the final losses may be apart where the environment is not the baseline's.
    ``resume`` is the command that goes on where a run was stopped; ``stop``, the one that stops early by itself.
    """

    command: Command
    runs: Annotated[int, Meta(ge=1)] = 3
    recipe: str = "none"
    flags: tuple[str, ...] = ()
    no_flags: tuple[str, ...] = ()
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    env: dict[str, str] = {}
    python: str | None = None
    isolate: bool = False
    artifacts: tuple[str, ...] = ()
    loss_pattern: str | None = None
    baseline: bool = True
    policy: Policy = "fail"
    loss_tolerance: Annotated[float, Meta(ge=0)] | None = None
    resume: Command | None = None
    stop: Command | None = None


class _Project(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The layout of detaudit.yaml, and of [tool.detaudit]."""

    audits: Annotated[dict[str, dict[str, Any]], Meta(min_length=1)]


def find(folder: Path) -> Path:
    """Return the file that holds the project's audits. Raises UnknownNameError where there is none."""
    for name in FILES:
        path = folder / name
        if path.is_file() and (path.suffix == ".yaml" or "detaudit" in _toml(path).get("tool", {})):
            return path
    raise UnknownNameError(
        "no audits are written down here: there is no detaudit.yaml, and no [tool.detaudit] in pyproject.toml",
        'Write [tool.detaudit.audits.NAME] with command = "train.py" into pyproject.toml.',
    )


def read(path: Path) -> dict[str, NamedAudit]:
    """Return the audits of a project by name.

    Raises UnknownNameError for a file that cannot be read, ConfigError for one that does not fit, with the place.
    """
    if path.suffix != ".toml":
        return {name: _audit(path, name, raw) for name, raw in yamlfile.load(path, _Project).audits.items()}
    try:
        project = msgspec.convert(_toml(path).get("tool", {}).get("detaudit", {}), _Project)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        raise ConfigError(f"{path}, [tool.detaudit{where.rstrip('`')}]: {problem}", _CURE) from error
    return {name: _audit(path, name, raw) for name, raw in project.audits.items()}


def _audit(path: Path, name: str, raw: dict[str, Any]) -> NamedAudit:
    try:
        return msgspec.convert(raw, NamedAudit)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        at = f".audits.{name}{where.rstrip('`')}"
        place = f"{path}, tool.detaudit{at}" if path.suffix == ".toml" else yamlfile.place(path, at)
        raise ConfigError(f"{place}: {problem}", _CURE) from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownNameError(f"{path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}", "Mend the TOML there.") from error


def select(audits: dict[str, NamedAudit], names: Sequence[str]) -> dict[str, NamedAudit]:
    """Return the audits of these names, all where none is given. Raises UnknownNameError for one that is not there."""
    for name in names:
        if name not in audits:
            raise unknown("audit", name, audits)
    return {name: audit for name, audit in audits.items() if not names or name in names}


def words(command: Command) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return a command as the command line has it: a script, what follows ``--``, a module.

    Raises ConfigError for a command whose quotes do not match.
    """
    try:
        parts = tuple(shlex.split(command)) if isinstance(command, str) else command
    except ValueError as error:
        raise ConfigError(f"the command {command!r} cannot be read: {error}", "Write it as a list of words.") from error
    if len(parts) > 1 and parts[0] == "-m":
        return (), parts[2:], parts[1]
    if parts and parts[0].endswith(".py"):
        return parts[:1], parts[1:], ""
    return (), parts, ""
