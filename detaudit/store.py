"""Keep audits on disk, and read them back."""

import contextlib
import os
from datetime import datetime
from pathlib import Path

import msgspec

from detaudit import private
from detaudit.errors import AuditNotFoundError, StorageError, UsageError
from detaudit.launch import MARK, RESULTS
from detaudit.launch.put_aside import recover
from detaudit.model import (
    SCHEMA_VERSION,
    Audit,
    Bisection,
    Check,
    Comparison,
    Fix,
    Resumption,
    Trace,
    VariationBisection,
    to_json,
)

_STORED = Audit | Bisection | VariationBisection | Trace | Fix | Resumption | Check | Comparison

FILE = "audit.json"
CHECK, COMPARISON = "check.json", "compare.json"

SIDES = ("a", "b")
"""The folders of the two sides of a comparison that was run."""


class _Versioned(msgspec.Struct):
    """Any report, as far as its version."""

    schema_version: str | int


def write(path: Path, data: bytes, *, shared: bool = False, instead: str = "another --out") -> None:
    """Write a whole file, or leave the old one untouched. Only this and ``append`` open output files.

    It is for this user alone, unless it is ``shared``: made to be committed, with the mode of any new file.
    Raises StorageError if that fails; ``instead`` is what else the user could choose.
    """
    half = path.with_name(path.name + ".part")
    try:
        try:
            half.unlink(missing_ok=True)  # one that was left behind would keep its mode
            with open(half, "wb", opener=None if shared else private.opener) as file:
                file.write(data)
            os.replace(half, path)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError.of(f"write {path}", error, instead) from error


def append(path: Path, data: bytes) -> None:
    """Append to a file that somebody else owns. Raises StorageError if that fails."""
    try:
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        raise StorageError.of(f"extend {path}", error, "another file") from error


def new_folder(mark: str) -> Path:
    """Return the default results folder of an audit with this mark, relative to the working directory."""
    return Path(RESULTS, f"{datetime.now():%Y%m%d-%H%M%S}-{mark}")


def prepare(out: Path) -> None:
    """Create the results folder of an audit, invisible to git.

    What a detaudit that was killed put aside is put back first. Raises StorageError if that fails, UsageError if the
    folder is not empty.
    """
    recover(out)
    try:
        private.make_folder(out)
        if any(out.iterdir()):
            raise FileExistsError
        (out / "runs").mkdir(mode=0o700)  # two audits that start at once cannot both
        (out / MARK).touch(mode=0o600)
    except FileExistsError as error:
        file = next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None)
        if file is None:
            raise UsageError(f"results folder {out} is not empty", "Remove it, or choose another --out.") from error
        message = f"results folder {out} is a file" if file == out else f"cannot make {out}: {file} is a file"
        raise UsageError(message, "Remove it, or choose another --out.") from error
    except OSError as error:
        raise StorageError.of(f"make {out}", error) from error
    if out.parent.name == RESULTS and not (out.parent / ".gitignore").exists():
        write(out.parent / ".gitignore", b"*\n", shared=True)


def save(out: Path, audit: Audit) -> None:
    """Write audit.json."""
    write(out / FILE, to_json(audit))


def newest() -> Path:
    """Return the newest results folder in the working directory's .detaudit. Raises AuditNotFoundError without one."""
    paths = all_results()
    if not paths:
        raise AuditNotFoundError(f"no results folder in {RESULTS}", "Pass the folder that --out named.")
    return paths[0]


def chosen(folder: Path | None, *, last: bool, command: str) -> Path:
    """Return the folder that was named, or the newest one. Raises UsageError unless it is exactly one of the two."""
    if (folder is None) != last:
        raise UsageError("name a results folder, or pass --last", f"{command} .detaudit/20261121-145042-24652d70")
    return newest() if folder is None else folder


def all_results(folder: Path = Path(RESULTS)) -> list[Path]:
    """Return the results folders in ``folder``, the working directory's .detaudit, the newest first."""
    results: dict[Path, float] = {}
    for path in (path for name in (FILE, CHECK, COMPARISON) for path in folder.glob(f"*/{name}")):
        with contextlib.suppress(OSError):  # removed meanwhile
            results[path.parent] = path.stat().st_mtime
    return sorted(results, key=results.__getitem__, reverse=True)


def is_readable(version: object, ours: str) -> bool:
    """Whether files of this schema version can be read by code of ``ours``: an older one only lacks keys."""
    major, _, minor = ours.partition(".")
    return version in [f"{major}.{number}" for number in range(int(minor) + 1)]


def load(path: Path) -> Audit:
    """Read an audit from its folder, or from the file itself.

    Raises AuditNotFoundError if there is none, or none that this version reads.
    """
    report = load_report(path)
    if isinstance(report, Comparison):
        raise AuditNotFoundError(f"{path} has a comparison, not an audit", f"Pass a folder in it ({', '.join(SIDES)}).")
    if isinstance(report, Check):
        names = ", ".join(one.name for one in report.audits)
        raise AuditNotFoundError(f"{path} has a check, not an audit", f"Pass a folder in it ({names}).")
    return report


def load_report(location: Path) -> Audit | Check | Comparison:
    """Read an audit, a check or a comparison; see load."""
    path = location
    if location.is_dir():
        path = next((one for name in (CHECK, COMPARISON) if (one := location / name).exists()), location / FILE)
    hint = "Pass a results folder, such as .detaudit/20261121-145042-24652d70."
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Versioned).schema_version
        if not is_readable(version, SCHEMA_VERSION):
            raise AuditNotFoundError(
                f"{path} has schema version {version}; this version of detaudit reads {SCHEMA_VERSION}",
                "Print it with the detaudit that wrote it.",
            )
        report: Audit | Check | Comparison = msgspec.json.decode(data, type=_STORED)
        return report
    except OSError as error:
        raise AuditNotFoundError(f"no audit in {location}: {error.strerror}", hint) from error
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise AuditNotFoundError(f"{path} is not an audit: {error}", hint) from error


LOCK = "detaudit.lock.json"
