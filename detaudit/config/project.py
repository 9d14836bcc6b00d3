"""The audits of a project, from detaudit.yaml or pyproject.toml."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from detaudit.compat import tomllib
from detaudit.config import options, yamlfile
from detaudit.config.options import DECLARED, RunOptions
from detaudit.config.recipes import MAX_SEED
from detaudit.config.yamlfile import unknown
from detaudit.errors import ConfigError, NothingToAuditError, UnknownNameError
from detaudit.notebooks.cells import SCRIPTS

# Find where a TOML file has a value: the parser of the standard library does not say.
#
# Whole statements at the start of a TOML file are a TOML file, too. So the statement with a value is the one without
# which the statements before it do not have the value, however its keys are written.


MOST_TRIES = 200
"""How often the start of a file is parsed: each line of the value that is looked for takes one, too."""

MOST_CHARACTERS = 2**17
"""Of a file that is searched."""


def position_of(text: str, keys: Sequence[str], *, of_key: bool = False) -> tuple[int, int] | None:
    """Return the line and the column, from 1, of the value at these keys, or ``of_key``.

    A value without a line of its own, such as an element of a list, has the place of the statement that it is in.
    Return None if the file does not have it, or is too long for a search.
    """
    lines = text.split("\n")
    index = _statement(lines, keys)
    if index is None:
        return None
    line = lines[index]
    own = list(re.finditer(rf"(?:^|(?<=[\s.{{,]))(['\"]?){re.escape(keys[-1])}\1\s*=\s*", line))
    if len(own) == 1 and not line.lstrip().startswith("["):
        return index + 1, 1 + (own[0].start() if of_key else own[0].end())
    return index + 1, 1 + len(line) - len(line.lstrip())


def _statement(lines: Sequence[str], keys: Sequence[str]) -> int | None:
    """Return the number of the line with which the statement begins that has a value at these keys."""
    before, through = 0, len(lines)  # statements without the value, and with it
    if sum(map(len, lines)) > MOST_CHARACTERS or not _has(_parsed(lines), keys):
        return None
    tries = MOST_TRIES
    while True:
        for number in _nearest(before + 1, through):
            if not tries:
                return None
            tries -= 1
            document = _parsed(lines[:number])
            if document is not None:
                break
        else:
            return before
        if _has(document, keys):
            through = number
        else:
            before = number


def _nearest(start: int, end: int) -> Iterator[int]:
    """Yield the numbers from ``start`` to before ``end``, those in the middle first."""
    middle = (start + end) // 2
    yield from sorted(range(start, end), key=lambda number: abs(number - middle))


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = tomllib.loads("\n".join(lines))
    except (RecursionError, ValueError):  # which a TOMLDecodeError is
        return None
    return document


def _has(node: object, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True


# Read the audits of a project from detaudit.yaml, or from [tool.detaudit] in pyproject.toml.


FILES = ("detaudit.yaml", "pyproject.toml")
"""The files that may define a project's audits, in order of precedence."""

Policy = Literal["fail", "warn", "rebase"]
"""How to treat a difference from a baseline of a different environment; ``rebase`` replaces the baseline."""

_YEAR_S = 366 * 24 * 3600

_TOML_PLACE = re.compile(r"(?s)(.+) \(at line (\d+), column (\d+)\)")
"""An error of the TOML syntax; at the end of a document it has no place."""

_HINT = "See docs/ci.md for the allowed keys."

Command = Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]


class NamedAudit(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """One named audit of a project.

    ``command`` is a script or ``-m MODULE`` with arguments, or a whole command. ``loss-tolerance`` is the largest
    accepted relative difference of the final losses, if the environment is not that of the baseline. ``resume`` is the
    command that resumes a stopped run, ``stop`` a command that stops early. ``declared`` has the declared options that
    are set, by the names of their fields, as they are written.
    """

    command: Command
    runs: Annotated[int, Meta(ge=1)] = 3
    recipe: str = "none"
    flags: tuple[str, ...] = ()
    no_flags: tuple[str, ...] = ()
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | None = None
    env: dict[str, str] = {}
    python: str | None = None
    baseline: bool = True
    policy: Policy = "fail"
    loss_tolerance: Annotated[float, Meta(ge=0)] | None = None
    resume: Command | None = None
    stop: Command | None = None
    declared: dict[str, Any] = {}

    def options(self) -> RunOptions:
        """Return the declared options. Raises UsageError for what one does not take."""
        return options.read(self.declared)


def _default(one: msgspec.structs.FieldInfo) -> Any:
    made = one.default_factory is not msgspec.NODEFAULT
    return msgspec.field(default_factory=one.default_factory) if made else one.default


_OWN = [one for one in msgspec.structs.fields(NamedAudit) if one.name != "declared"]
_KEYS = {name: options.declaration(name).key for name in DECLARED if options.declaration(name).key is not None}
_Table = msgspec.defstruct(
    "_Table",
    [(one.name, one.type, _default(one)) for one in _OWN]
    + [(name, key | msgspec.UnsetType, msgspec.UNSET) for name, key in _KEYS.items()],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="kebab",
)
"""The layout of an audit: what only a configuration has, and the declared options that have a key there."""


class _Project(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The layout of detaudit.yaml, and of [tool.detaudit]."""

    audits: Annotated[dict[str, dict[str, Any]], Meta(min_length=1)]


def find(folder: Path) -> Path:
    """Return the file that defines the project's audits. Raises NothingToAuditError if there is none."""
    for name in FILES:
        path = folder / name
        if path.is_file() and (path.suffix == ".yaml" or "detaudit" in _tools(path)):
            return path
    raise NothingToAuditError(
        "no audits configured: no detaudit.yaml, and no [tool.detaudit] in pyproject.toml",
        'Add [tool.detaudit.audits.NAME] with command = "train.py" to pyproject.toml.',
    )


def read(path: Path) -> dict[str, NamedAudit]:
    """Return the audits of a project by name.

    Raises UnknownNameError for a file that cannot be read, ConfigError with the place for invalid contents.
    """
    if path.suffix != ".toml":
        return {name: _audit(path, name, raw) for name, raw in yamlfile.load(path, _Project, _HINT).audits.items()}
    try:
        project = msgspec.convert(_tools(path).get("detaudit", {}), _Project)
    except msgspec.ValidationError as error:
        problem, where = yamlfile.split(error)
        location = _place(path, _keys(where), problem)
        raise ConfigError(f"{location}: {problem}", _HINT) from error
    return {name: _audit(path, name, raw) for name, raw in project.audits.items()}


def _audit(path: Path, name: str, raw: dict[str, Any]) -> NamedAudit:
    try:
        table = yamlfile.converted(path, raw, _Table)
    except msgspec.ValidationError as error:
        problem, where = yamlfile.split(error)
        if path.suffix == ".toml":
            location = _place(path, ("audits", name, *_keys(where)), problem)
        else:
            location = yamlfile.location(path, f".audits.{name}{where}", problem)
        raise ConfigError(f"{location}: {problem}", yamlfile.nearest_key(problem, _Table) or _HINT) from error
    declared_options = {name: value for name in _KEYS if (value := getattr(table, name)) is not msgspec.UNSET}
    return NamedAudit(**{one.name: getattr(table, one.name) for one in _OWN}, declared=declared_options)


def _keys(where: str) -> tuple[str, ...]:
    """Return the keys of a path such as ``.flags[2]``, up to one that is not known."""
    return tuple(filter(None, where.partition("[")[0].split(".")))


def _place(path: Path, keys: Sequence[str], problem: str) -> str:
    """Return the place of a value of [tool.detaudit], or its keys if that cannot be found.

    If the ``problem`` is an unknown key there, it is the place of that key.
    """
    unknown_key = yamlfile.unknown_key(problem)
    every = ("tool", "detaudit", *keys, *filter(None, [unknown_key]))
    position = position_of(path.read_text(encoding="utf-8"), every, of_key=bool(unknown_key))
    if position is None:
        return f"{path}, {'.'.join(('tool', 'detaudit', *keys))}"
    return f"{path}:{position[0]}:{position[1]}"


def _tools(path: Path) -> dict[str, Any]:
    """Return the table [tool] of a TOML file, nothing if there is none."""
    try:
        tools = tomllib.loads(path.read_text(encoding="utf-8")).get("tool")
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownNameError(f"cannot read {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        match = _TOML_PLACE.fullmatch(str(error))
        message = f"{path}:{match[2]}:{match[3]}: {match[1]}" if match else f"{path}: {error}"
        raise ConfigError(message, "Fix the TOML syntax.") from error
    except (RecursionError, ValueError) as error:  # such as of a number with thousands of digits
        raise ConfigError(f"{path}: {error}", _HINT) from error
    return tools if isinstance(tools, dict) else {}


def select(audits: dict[str, NamedAudit], names: Sequence[str]) -> dict[str, NamedAudit]:
    """Return the audits with these names, or all if none is given. Raises UnknownNameError for an unknown one."""
    for name in names:
        if name not in audits:
            raise unknown("audit", name, audits)
    return {name: audit for name, audit in audits.items() if not names or name in names}


def words(command: Command) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the parts of a command as on the command line: the script, the arguments after ``--``, the module.

    Raises ConfigError for unbalanced quotes.
    """
    try:
        parts = tuple(shlex.split(command)) if isinstance(command, str) else command
    except ValueError as error:
        raise ConfigError(f"cannot parse command {command!r}: {error}", "Write it as a list of words.") from error
    if len(parts) > 1 and parts[0] == "-m":
        return (), parts[2:], parts[1]
    if parts and parts[0].endswith(SCRIPTS):
        return parts[:1], parts[1:], ""
    return (), parts, ""
