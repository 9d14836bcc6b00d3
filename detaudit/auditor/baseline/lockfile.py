"""The lock file: the baselines of a project's audits, committed with it."""

import json
from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec

from detaudit.auditor import store
from detaudit.auditor.baseline import recordings
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import comparer
from detaudit.errors import AuditNotFoundError, ConfigError, UnknownNameError
from detaudit.model import LockChange, Recording
from detaudit.model.encoding import encode
from detaudit.recipe.names import unknown

LOCK = "detaudit.lock.json"

SCHEMA_VERSION = "2.0"
"""Of the lock file: a new key raises the second number, any other change the first.

2.0: what left the run. Earlier layouts were never released.
"""

_LINE = 300
"""The longest line of the file whose parts have no lines of their own."""

_WRITE = "Create it with `detaudit check --update`."


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a lock file."""

    schema_version: str
    audits: dict[str, Recording]


def read_lock(path: Path) -> dict[str, Recording]:
    """Return the baselines in a lock file by name.

    Raises AuditNotFoundError if there is none, ConfigError if it is broken or of another version.
    """
    hint = "Restore it from version control, or remove it and write it again with `detaudit check --update`."
    try:
        data = path.read_bytes()
        version = _version(path, data, hint)
        if not store.is_readable(version, SCHEMA_VERSION):
            message = f"{path} has schema version {version}; this version of detaudit reads {SCHEMA_VERSION}"
            hint = "Remove it and write it again with `detaudit check --update`, or use the detaudit that wrote it."
            raise ConfigError(message, hint)
        return msgspec.json.decode(data, type=Lock).audits
    except OSError as error:
        raise AuditNotFoundError(f"no lock file {path}: {error.strerror}", _WRITE) from error
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a lock file: {error}", hint) from error


def _version(path: Path, data: bytes, hint: str) -> object:
    try:
        return msgspec.convert(json.loads(data), dict[str, object]).get("schema_version")
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}:{error.colno} is not a lock file: {error.msg}"
        raise ConfigError(message, hint) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a lock file: {error.reason}", hint) from error
    except ValueError as error:  # such as a number with thousands of digits
        raise ConfigError(f"{path} is not a lock file: {error}", hint) from error


def find(path: Path, name: str) -> Recording:
    """Return one baseline of a lock file; the only one if ``name`` is empty.

    Raises as read_lock does, and UnknownNameError for a name that is not there.
    """
    audits = read_lock(path)
    if not name and len(audits) == 1:
        return next(iter(audits.values()))
    if not name:
        hint = f"Name one of them: {', '.join(f'{path}#{one}' for one in sorted(audits))}."
        raise UnknownNameError(f"{path} has {len(audits)} baselines", hint if audits else _WRITE)
    if name not in audits:
        raise unknown("baseline", name, sorted(audits))
    return audits[name]


def write_lock(path: Path, audits: Mapping[str, Recording]) -> None:
    """Write a lock file. Raises StorageError if that fails."""
    lock = Lock(schema_version=SCHEMA_VERSION, audits=dict(sorted(audits.items())))
    found = json.loads(encode(_without_defaults(lock)))
    store.write(path, f"{_laid_out(found)}\n".encode(), shared=True)


def _without_defaults(value: Any) -> Any:
    """Return objects as dicts without what their classes have by default, to which they are read again."""
    if isinstance(value, msgspec.Struct) and not value.__struct_config__.array_like:
        fields = [(one, getattr(value, one.name)) for one in msgspec.structs.fields(value)]
        kept = [(one.encode_name, own) for one, own in fields if one.required or own != _default(one)]
        return {name: _without_defaults(own) for name, own in kept}
    if isinstance(value, Mapping):
        return {key: _without_defaults(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_defaults(one) for one in value]
    return value


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _laid_out(value: Any) -> str:
    """Return JSON in which what fits into a line is on one, so that a file under version control changes by lines."""
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(compact) <= _LINE or not isinstance(value, dict | list):
        return compact
    names = [f"{json.dumps(name, ensure_ascii=False)}: " for name in value] if isinstance(value, dict) else repeat("")
    ones = value.values() if isinstance(value, dict) else value
    lines = ",\n".join(f"{name}{_laid_out(one)}" for name, one in zip(names, ones, strict=False))
    return f"{{\n{lines}\n}}" if isinstance(value, dict) else f"[\n{lines}\n]"


def changes(name: str, old: Recording | None, new: Recording) -> list[LockChange]:
    """Return what changed in a baseline; nothing if it is the same."""
    if old is None:
        return [LockChange(audit=name, new_ranks=new.run.ranks)]
    found = []
    if not comparer.same(old.run, new.run):
        found.append(LockChange(audit=name, old_ranks=old.run.ranks, new_ranks=new.run.ranks))
    a, b = (dict(recordings.asked(side), **side.environment) for side in (old, new))
    found += [LockChange(audit=name, name=one.name, old=one.a, new=one.b) for one in environment.changes(a, b)]
    return found or ([LockChange(audit=name)] if old != new else [])
