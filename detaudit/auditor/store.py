"""Keeps audits on disk: written after every run, read back by ``detaudit report``."""

import os
from datetime import datetime
from pathlib import Path

import msgspec

from detaudit.errors import AuditNotFoundError, StorageError, UsageError
from detaudit.launch import RESULTS
from detaudit.model import SCHEMA_VERSION, Audit, Bisection, Check, Trace, VariationBisection, to_json

FILE = "audit.json"
CHECK = "check.json"


def write(path: Path, data: bytes) -> None:
    """Write a whole file or leave the one that was there. It and ``append`` alone open output files.

    Raises StorageError where that fails.
    """
    half = path.with_name(path.name + ".part")
    try:
        try:
            half.write_bytes(data)
            os.replace(half, path)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", "Free space, or name another --out.") from error


def append(path: Path, data: bytes) -> None:
    """Add to the end of a file that somebody else keeps. Raises StorageError where that fails."""
    try:
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        raise StorageError(f"cannot add to {path}: {error.strerror}", "Free space, or name another file.") from error


def new_folder(mark: str) -> Path:
    """Return where the results of an audit with this mark are kept by default, relative to where it is started."""
    return Path(RESULTS, f"{datetime.now():%Y%m%d-%H%M%S}-{mark}")


def prepare(out: Path) -> None:
    """Make the folder of an audit, invisible to git.

    Raises StorageError where that fails, UsageError where something is in it already.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"the folder for the results, {out}, is not empty", "Remove it, or name another --out.")
    except OSError as error:
        raise StorageError(f"cannot make {out}: {error.strerror}", "Name another folder with --out.") from error
    if out.parent.name == RESULTS and not (out.parent / ".gitignore").exists():
        write(out.parent / ".gitignore", b"*\n")


def save(out: Path, audit: Audit) -> None:
    """Write audit.json."""
    write(out / FILE, to_json(audit))


def load(place: Path) -> Audit:
    """Read an audit from its folder, or from the file itself.

    Raises AuditNotFoundError where there is none, or none that this version reads.
    """
    found = load_report(place)
    if isinstance(found, Check):
        names = ", ".join(one.name for one in found.checked)
        raise AuditNotFoundError(f"{place} holds a check, not an audit", f"Name a folder in it ({names}).")
    return found


def load_report(place: Path) -> Audit | Check:
    """Read an audit or a check; see load."""
    path = place
    if place.is_dir():
        path = place / (CHECK if (place / CHECK).exists() else FILE)
    try:
        data = path.read_bytes()
        raw = msgspec.json.decode(data)
        version = raw.get("schema_version")
        if version != SCHEMA_VERSION:
            raise AuditNotFoundError(
                f"{path} has schema version {version}, this detaudit reads {SCHEMA_VERSION}",
                "Print it with the detaudit that wrote it.",
            )
        kinds: dict[str, type[Audit | Check]] = {
            "outcome": Bisection,
            "answer": VariationBisection,
            "culprit": Trace,
            "checked": Check,
        }
        return msgspec.json.decode(data, type=next((kind for key, kind in kinds.items() if key in raw), Audit))
    except OSError as error:
        raise AuditNotFoundError(
            f"there is no audit at {place}: {error.strerror}", "Name a folder that `detaudit run` wrote (.detaudit/…)."
        ) from error
    except (msgspec.MsgspecError, AttributeError) as error:
        raise AuditNotFoundError(f"{path} is no audit: {error}", "Name a folder that `detaudit run` wrote.") from error
