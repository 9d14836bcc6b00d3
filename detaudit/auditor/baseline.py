"""Reads and writes baselines: the recordings of named audits, in a lock file that is committed beside the code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from detaudit.auditor import environment, recordings, store
from detaudit.errors import BaselineError, UsageError
from detaudit.model import Recording, digits
from detaudit.recipe.names import unknown

LOCK = "detaudit.lock.json"
LOCK_VERSION = 1
"""Of the lock file: keys only grow; anything else, the digests included, is a new version. 1: first layout."""

_CURE = "`detaudit check --update` writes it anew; git has the one that was there."


class _Lock(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: int
    audits: dict[str, Recording]


def read_lock(path: Path) -> dict[str, Recording]:
    """Return the recordings of a lock file by the names of their audits.

    Raises BaselineError where there is none, or none that this version reads; the message holds line and column of
    what is no JSON, such as the marks of a merge.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BaselineError(
            f"there is no baseline at {path}: {error.strerror}", "`detaudit check --update` writes one."
        ) from error
    version = _version(path, data)
    if version != LOCK_VERSION:
        raise BaselineError(
            f"{path} has schema version {version}, this detaudit reads {LOCK_VERSION}",
            "Use the detaudit that wrote it, or write it anew: detaudit check --update",
        )
    try:
        return msgspec.json.decode(data, type=_Lock).audits
    except msgspec.MsgspecError as error:
        raise BaselineError(f"{path} is no lock file of detaudit: {error}", _CURE) from error


def _version(path: Path, data: bytes) -> Any:
    try:
        raw = json.loads(data)
    except json.JSONDecodeError as error:
        raise BaselineError(f"{path}:{error.lineno}:{error.colno} is no JSON: {error.msg}", _CURE) from error
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path} is no text: {error.reason}", _CURE) from error
    if not isinstance(raw, dict) or "audits" not in raw:
        raise BaselineError(f"{path} is no lock file of detaudit: it has no audits", _CURE)
    return raw.get("schema_version")


def find(path: Path, name: str) -> Recording:
    """Return one baseline of a lock file; the only one where ``name`` is empty.

    Raises BaselineError as read_lock does, UnknownNameError for a name that is not there, UsageError for none where
    there are several.
    """
    audits = read_lock(path)
    if name:
        if name not in audits:
            raise unknown("baseline", name, audits)
        return audits[name]
    if len(audits) != 1:
        raise UsageError(f"{path} holds {len(audits)} baselines", f"Name one: {path}#NAME. {', '.join(sorted(audits))}")
    return next(iter(audits.values()))


def write_lock(path: Path, audits: Mapping[str, Recording]) -> None:
    """Write a lock file: the same text for the same recordings, so that git shows what changed.

    Raises StorageError where that fails, and leaves the one that was there.
    """
    plain = msgspec.to_builtins(_Lock(schema_version=LOCK_VERSION, audits=dict(audits)), str_keys=True)
    store.write(path, json.dumps(_ordered(plain), indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _ordered(value: Any) -> Any:
    """Return a value with its keys sorted, steps by number."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (0, int(key), "") if key.isdecimal() else (1, 0, key))
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    return value


def changed(name: str, old: Recording | None, new: Recording) -> list[str]:
    """Return what is not as it was in a baseline, a line each; nothing where it is the same."""
    if old is None:
        return [f"{name}: a new baseline, {_result(new)}"]
    told = []
    if not recordings.same(old, new):
        told.append(f"{name}: {_result(old)} → {_result(new)}")
    a, b = (dict(recordings.asked(side), **side.environment) for side in (old, new))
    told += [f"{name}: {one.name} {one.a or '-'} → {one.b or '-'}" for one in environment.changes(a, b)]
    return told or ([f"{name}: other steps or stages are kept"] if old != new else [])


def _result(recording: Recording) -> str:
    ranks = [rank.record for rank in recording.ranks]
    told = [f"digest {(r.digest or '-')[:12]}, final loss {digits(r.final_loss)}, {r.steps} steps" for r in ranks[:1]]
    return "; ".join([*told, *([f"{len(ranks)} ranks"] if len(ranks) > 1 else [])])
