"""Baselines: what each of a project's audits recorded once, kept in a lock file that is committed."""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from detaudit.auditor import store
from detaudit.auditor.baseline import recordings
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import comparer
from detaudit.errors import AuditNotFoundError, ConfigError, UnknownNameError
from detaudit.model import Recording, digits
from detaudit.recipe.names import unknown

LOCK = "detaudit.lock.json"

SCHEMA_VERSION = 1
"""Of the lock file: keys only grow; anything else is a new version. 1: first layout."""

_WRITE = "`detaudit check --update` writes it."


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a lock file."""

    schema_version: int
    audits: dict[str, Recording]


def read_lock(path: Path) -> dict[str, Recording]:
    """Return the baselines in a lock file by name.

    Raises AuditNotFoundError where there is none, ConfigError for one that is broken or of another version.
    """
    cure = "Mend it by hand or from version control, or write it anew with `detaudit check --update`."
    try:
        data = path.read_bytes()
        version = _version(path, data, cure)
        if version != SCHEMA_VERSION:
            told = f"{path} has schema version {version}, this detaudit reads {SCHEMA_VERSION}"
            raise ConfigError(told, "Write it anew with `detaudit check --update`, or use the detaudit that wrote it.")
        return msgspec.json.decode(data, type=Lock).audits
    except OSError as error:
        raise AuditNotFoundError(f"there is no lock file {path}: {error.strerror}", _WRITE) from error
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is no lock file: {error}", cure) from error


def _version(path: Path, data: bytes, cure: str) -> object:
    try:
        return msgspec.convert(json.loads(data), dict[str, object]).get("schema_version")
    except json.JSONDecodeError as error:
        told = f"{path}:{error.lineno}:{error.colno} is no lock file: {error.msg}"
        raise ConfigError(told, cure) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no lock file: {error.reason}", cure) from error


def find(path: Path, name: str) -> Recording:
    """Return one baseline of a lock file; the only one where ``name`` is empty.

    Raises as read_lock does, and UnknownNameError for a name that is not there.
    """
    audits = read_lock(path)
    if not name and len(audits) == 1:
        return next(iter(audits.values()))
    if not name:
        cure = f"Name one of them: {', '.join(f'{path}#{one}' for one in sorted(audits))}."
        raise UnknownNameError(f"{path} holds {len(audits)} baselines", cure if audits else _WRITE)
    if name not in audits:
        raise unknown("baseline", name, sorted(audits))
    return audits[name]


def write_lock(path: Path, audits: Mapping[str, Recording]) -> None:
    """Write a lock file. Raises StorageError where that fails."""
    lock = Lock(schema_version=SCHEMA_VERSION, audits=dict(sorted(audits.items())))
    store.write(path, msgspec.json.format(msgspec.json.encode(lock), indent=2) + b"\n")


def changed(name: str, old: Recording | None, new: Recording) -> list[str]:
    """Return what is not as it was in a baseline, a line each; nothing where it is the same."""
    if old is None:
        return [f"{name}: a new baseline, {_result(new)}"]
    told = []
    if not comparer.same(old.run, new.run):
        told.append(f"{name}: {_result(old)} → {_result(new)}")
    a, b = (dict(recordings.asked(side), **side.environment) for side in (old, new))
    told += [f"{name}: {one.name} {one.a or '-'} → {one.b or '-'}" for one in environment.changes(a, b)]
    return told or ([f"{name}: other steps or stages are kept"] if old != new else [])


def _result(recording: Recording) -> str:
    ranks = recording.run.ranks
    told = [f"digest {(r.digest or '-')[:12]}, final loss {digits(r.final_loss)}, {r.steps} steps" for r in ranks[:1]]
    return "; ".join([*told, *([f"{len(ranks)} ranks"] if len(ranks) > 1 else [])])
