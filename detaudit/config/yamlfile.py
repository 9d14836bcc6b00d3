"""YAML as typed values: errors have file, line and column, and the nearest name."""

import difflib
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import msgspec.inspect
import yaml

from detaudit.errors import ConfigError, UnknownNameError

# Read a YAML file into typed values; every error names the file, the line and the column.


T = TypeVar("T")

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml is ten times faster; PyYAML has it if it is installed as a wheel.

It is for our own files, because the stack overflows at a file that is nested deeply enough.
"""

MOST_BYTES = 2**20

_HINT = "See configs/ for valid examples."
_UNKNOWN_FIELD = "Object contains unknown field `"


def configs_dir() -> Path:
    """Return the folder of flags/ and recipes/: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def load(path: Path, kind: type[T], hint: str = _HINT) -> T:
    """Return the contents of ``path`` as ``kind``; ``hint`` says where to find valid examples.

    Raises UnknownNameError if the file cannot be read, ConfigError if it is not YAML or has invalid contents.
    """
    text = _read(path)
    try:
        # The loader is a safe one, in C if available.
        data = yaml.load(text, Loader=_LOADER) if _is_ours(path) else yaml.safe_load(text)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError(_at(path, mark, error.problem or "not YAML"), "Fix the YAML syntax.") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {error}", "Fix the YAML syntax.") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply", hint) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # such as the 45th day of a month
        raise ConfigError(f"{path}: a value is not of its type: {error}", hint) from error
    try:
        return converted(path, data, kind)
    except msgspec.ValidationError as error:
        problem, where = split(error)
        mark = _mark(yaml.compose(text, Loader=yaml.SafeLoader), where, unknown_key(problem))
        raise ConfigError(_at(path, mark, problem), nearest_key(problem, kind) or hint) from error


def converted(path: Path, data: Any, kind: type[T]) -> T:
    """Return data from a file as ``kind``. Raises ValidationError if it is not, ConfigError for what is no text."""
    try:
        return msgspec.convert(data, kind)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{path}: half a surrogate pair is not text", _HINT) from error


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path}: larger than {MOST_BYTES:,} bytes", _HINT)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownNameError(f"cannot read {path}: {error}") from error


def _is_ours(path: Path) -> bool:
    return path.is_relative_to(configs_dir())


def split(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the problem that a validation error reports, and the path of the value, such as ``.flags[2]``."""
    problem, _, where = str(error).partition(" - at `$")
    return problem, where.rstrip("`")


def location(path: Path, where: str, problem: str = "") -> str:
    """Return ``file:line:column`` of the value at a path such as ``.flags[2]`` in a file that was read before.

    If the ``problem`` is an unknown key there, it is the place of that key.
    """
    mark = _mark(yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader), where, unknown_key(problem))
    return _at(path, mark, "").removesuffix(": ")


def _at(path: Path, mark: Any, problem: str) -> str:
    position = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
    return f"{path}{position}: {problem}"


def unknown_key(problem: str) -> str:
    """Return the key if a problem is an unknown one, "" otherwise."""
    return problem.removeprefix(_UNKNOWN_FIELD).rstrip("`") if problem.startswith(_UNKNOWN_FIELD) else ""


def nearest_key(problem: str, kind: Any) -> str:
    """Return a hint with the key that was meant if the problem is an unknown one, "" if none is near."""
    key = unknown_key(problem)
    near = difflib.get_close_matches(key, sorted(_fields(kind)), n=1) if key else []
    return f"Did you mean {near[0]!r}?" if near else ""


def _fields(kind: Any) -> set[str]:
    """Return the names of all keys that ``kind`` may have, at any depth."""
    fields: set[str] = set()
    stack: list[Any] = [msgspec.inspect.type_info(kind)]
    while stack:
        info = stack.pop()
        for field in getattr(info, "fields", ()):
            fields.add(field.encode_name)
            stack.append(field.type)
        stack += [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
        stack += [inner for name in ("item_type", "value_type") if (inner := getattr(info, name, None)) is not None]
    return fields


def _mark(node: Any, where: str, key: str = "") -> Any:
    """Return the mark of the node at a msgspec path such as ``[2].flags[0]``, or of the nearest one above it.

    If that is a mapping with ``key``, it is the mark of the key.
    """
    for step in where.replace("[", ".[").split("."):
        if not step or node is None:
            continue
        child = None
        if isinstance(node, yaml.SequenceNode) and step.startswith("["):
            digits = step[1:-1]
            child = node.value[int(digits)] if digits.isdecimal() and int(digits) < len(node.value) else None
        elif isinstance(node, yaml.MappingNode):
            child = next((value for key, value in node.value if key.value == step), None)
        if child is None:
            break
        node = child
    if key and isinstance(node, yaml.MappingNode):
        node = next((one for one, _ in node.value if one.value == key), node)
    return node.start_mark if node is not None else None


# Help with names that do not exist: the replacement of a retired setting, the nearest match of a misspelled name.


_MOST = 20


class Retired(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of configs/retired.yaml, which explains the fields."""

    id: str
    names: tuple[str, ...]
    status: Literal["dead", "legacy", "harmful", "redundant", "no-op", "irrelevant"]
    why: str
    replacement: str = ""
    source: str


@functools.cache
def load_retired() -> tuple[Retired, ...]:
    """Read the retired settings."""
    return load(configs_dir() / "retired.yaml", tuple[Retired, ...])


def normal(name: str) -> str:
    """Return the normal form of a setting: ``a_b`` for ``XLA_FLAGS=--a_b=true``, ``--a_b`` and ``A_B``."""
    word = name.strip().lower().removeprefix("xla_flags=").lstrip("-")
    return word.split("=")[0].split("(")[0].strip()


def retired(name: str) -> Retired | None:
    """Return the row of a retired setting, ``None`` for any other name."""
    keys = {name.strip().lower(), normal(name)}
    return next((row for row in load_retired() if any(_key(known) in keys for known in (row.id, *row.names))), None)


def _key(known: str) -> str:
    """Return the normal form of a known name; one with a value is retired only with that value."""
    return known.lower() if "=" in known else normal(known)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the name that was probably meant, ``""`` if none is as similar as ``cutoff`` says (0 to 1)."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), "")


def unknown(kind: str, name: str, known: Iterable[str], location: str = "") -> UnknownNameError:
    """Return the error for a name that does not exist (in ``location``, if given), with the nearest match as a hint."""
    names = list(known)
    near = nearest(name, names, cutoff=0.4)
    hints = [f"Did you mean {near!r}?"] if near else []
    if len(names) <= _MOST:
        hints.append(f"Available: {', '.join(names)}.")
    elif kind.startswith(("flag", "recipe")) and not location:
        hints.append("Run `detaudit recipes` for the full list.")
    return UnknownNameError(f"unknown {kind} {name!r}" + f" in {location}" * bool(location), " ".join(hints))
