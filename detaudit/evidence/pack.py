"""From a results folder, or two that are compared, to an archive."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from detaudit import store
from detaudit.evidence import archive, materials
from detaudit.evidence.archive import Source
from detaudit.evidence.materials import Materials, Report
from detaudit.evidence.statement import NAME, statement
from detaudit.judge.figures import figures
from detaudit.launch import MARK
from detaudit.launch.workspace import LIVE, WORK
from detaudit.model import Comparison, to_json
from detaudit.report import render

RESULTS, HTML, COMPARISON = "results", "report.html", "compare.json"
"""Members: the results folder, the report for a browser, and a comparison."""

SIDES = ("a", "b")
"""The folders of the two sides of a comparison."""

_LEFT_OUT = (WORK, LIVE, "tree")
"""Folders of runs in progress, and the copy of the source in which `detaudit fix` tries changes."""

_KNOWN = "known-files"
"""What earlier runs left on the machine: no result."""


def of_results(path: Path, report: Report, folder: Path, cwd: Path) -> None:
    """Write the archive of the results in ``folder``; what was not hashed when the runs ended is hashed now.

    Raises StorageError if it cannot be written.
    """
    used, members = materials.load(folder), dict[str, Source](files_of(folder, RESULTS))
    if used is None:
        used, diff = materials.collect(report, folder, cwd, later=True)
        members |= _collected(used, diff)
    _write(path, report, members, html(report, folder), used)


def of_comparison(path: Path, report: Comparison, sides: Mapping[str, Path], cwd: Path) -> None:
    """Write the archive of a comparison of two results folders or lock files. Raises StorageError."""
    used, diff = materials.collect(report, cwd / RESULTS, cwd, later=True)
    members: dict[str, Source] = {COMPARISON: to_json(report), **_collected(used, diff)}
    for name, side in sides.items():
        members |= files_of(side, name) if side.is_dir() else {f"{name}/{store.LOCK}": side}
    _write(path, report, members, html(report, None), used)


def html(report: Report, folder: Path | None) -> bytes:
    """Return the report for a browser, with the figures of the logs in its results folder."""
    return render(report, "html", figures(report, folder)).encode(errors="backslashreplace")


def files_of(folder: Path, name: str) -> dict[str, Path]:
    """Return the files of a results folder by their names in the archive, without copies of the user's files."""
    return {f"{name}/{path.relative_to(folder).as_posix()}": path for path in _files(folder, folder / MARK)}


def _collected(used: Materials, diff: bytes) -> dict[str, Source]:
    kept: dict[str, Source] = {f"{RESULTS}/{materials.FILE}": materials.encoded(used)}
    return {**kept, f"{RESULTS}/{materials.DIFF}": diff} if diff else kept


def _write(path: Path, report: Report, sources: dict[str, Source], page: bytes, used: Materials) -> None:
    sources = {**sources, HTML: page}
    members = {name: archive.measured(source) for name, source in sources.items()}
    said = statement(report, used, members)
    archive.write(path, {**sources, NAME: said}, {**members, NAME: archive.measured(said)})


def _files(folder: Path, mark: Path) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False) and not _is_copy(path):
            yield from _files(path, mark)
        elif entry.is_file(follow_symlinks=False) and path != mark and entry.name != _KNOWN and path.suffix != ".part":
            yield path


def _is_copy(folder: Path) -> bool:
    """Whether a folder beside the runs of an audit has a copy of the user's files; an audit may have such a name."""
    named = any(folder.name == one or folder.name.startswith(f"{one}-") for one in _LEFT_OUT)
    return named and (folder.parent / "runs").is_dir() and not (folder / store.FILE).exists()
