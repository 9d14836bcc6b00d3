"""Keep audits on disk, read them back, and find earlier ones of the same command."""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from detaudit import private
from detaudit.errors import AuditNotFoundError, StorageError, UsageError
from detaudit.launch import MARK, RESULTS
from detaudit.launch.plan import Settings
from detaudit.launch.put_aside import recover
from detaudit.model import (
    SCHEMA_VERSION,
    AppliedRecipe,
    Audit,
    Bisection,
    Check,
    Fix,
    Group,
    Resumption,
    Trace,
    VariationBisection,
    to_json,
)

_STORED = Audit | Bisection | VariationBisection | Trace | Fix | Resumption | Check

FILE = "audit.json"
CHECK = "check.json"


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


def all_results(folder: Path = Path(RESULTS)) -> list[Path]:
    """Return the results folders in ``folder``, the working directory's .detaudit, the newest first."""
    results = {path.parent: path.stat().st_mtime for name in (FILE, CHECK) for path in folder.glob(f"*/{name}")}
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
    if isinstance(report, Check):
        names = ", ".join(one.name for one in report.audits)
        raise AuditNotFoundError(f"{path} has a check, not an audit", f"Pass a folder in it ({names}).")
    return report


def load_report(location: Path) -> Audit | Check:
    """Read an audit or a check; see load."""
    path = location
    if location.is_dir():
        path = location / (CHECK if (location / CHECK).exists() else FILE)
    hint = "Pass a results folder, such as .detaudit/20261121-145042-24652d70."
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Versioned).schema_version
        if not is_readable(version, SCHEMA_VERSION):
            raise AuditNotFoundError(
                f"{path} has schema version {version}; this version of detaudit reads {SCHEMA_VERSION}",
                "Print it with the detaudit that wrote it.",
            )
        report: Audit | Check = msgspec.json.decode(data, type=_STORED)
        return report
    except OSError as error:
        raise AuditNotFoundError(f"no audit in {location}: {error.strerror}", hint) from error
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise AuditNotFoundError(f"{path} is not an audit: {error}", hint) from error


LOCK = "detaudit.lock.json"


_MOST = 20
"""How many of the newest audits are read."""


def digests_of_code(cwd: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the user's source files, those that can be read, by their names seen from ``cwd``."""
    by_file = {}
    for file in files:
        try:
            by_file[file] = hashlib.sha256((cwd / file).read_bytes()).hexdigest()
        except OSError:  # run from an archive, or gone meanwhile
            continue
    return by_file


def earlier_difference(settings: Settings, code: Mapping[str, str], recipe: AppliedRecipe | None = None) -> Path | None:
    """Return the newest results folder of the same command and ``code`` in which two runs differ, None without one.

    ``code`` are digests of the user's source files, as of ``Audit.code``. The runs were those with the flags and the
    seed of ``recipe``, by default those without flags. Runs whose environment was varied do not count.
    """
    for folder, audit in _earlier_audits(settings):
        if _is_same(audit.code, code) and any(_is_of(group, recipe) for group in audit.groups):
            return folder
    return None


def earlier_steps(settings: Settings) -> int | None:
    """Return how many steps a whole run of the same command did, in the newest audit that has one; None without."""
    runs = (run for _, audit in _earlier_audits(settings) for group in audit.groups for run in group.runs)
    return next((run.steps for run in runs if run.is_whole), None)


def _earlier_audits(settings: Settings) -> Iterator[tuple[Path, Audit]]:
    """Yield the earlier audits of the same command with their results folders, the newest first."""
    results = next((one for one in settings.out.parents if one.name == RESULTS), settings.cwd / RESULTS)
    for folder in all_results(results)[:_MOST]:
        if folder == settings.out or folder in settings.out.parents:
            continue
        with contextlib.suppress(AuditNotFoundError):  # of another version, or damaged
            report = load_report(folder)
            audits = [one.audit for one in report.audits] if isinstance(report, Check) else [report]
            yield from ((folder, audit) for audit in audits if audit.target == settings.target.words)


def _is_same(code: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether no file has changed that both loaded; a module may be imported in some runs only."""
    both = {*code} & {*other}
    return bool(both) and all(code[file] == other[file] for file in both)


def _is_of(group: Group, recipe: AppliedRecipe | None) -> bool:
    """Whether these runs differ, with the flags and the seed of a recipe, and in one environment."""
    if group.first_difference is None or group.varied:
        return False
    if recipe is None or not recipe.flags:
        return not group.recipe.flags
    return {*group.recipe.flags} == {*recipe.flags} and group.recipe.seed == recipe.seed
