"""What differs between the runs of a group and does not decide: files without tensors, and lines on stdout."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from detaudit.auditor.evidence import printed_lines, written
from detaudit.model import FileDifference, PrintedDifference
from detaudit.model.outputs import File, Role

MOST_PARTS = 5
MOST_DIFFERENCES = 200

Folders = Mapping[int, Path]
"""The folders of runs, by their numbers."""


def differences(folders: Folders) -> tuple[FileDifference, ...]:
    """Return the files that differ from those of the first run, each once."""
    runs = [(run, {file.name: file for file in written.kept(folder).files}) for run, folder in folders.items()]
    found: dict[str, FileDifference] = {}
    for run, files in runs[1:]:
        for differs in _between(runs[0], (run, files)):
            found.setdefault(differs.path, differs)
    return tuple(found[path] for path in sorted(found))[:MOST_DIFFERENCES]


def _between(a: tuple[int, Mapping[str, File]], b: tuple[int, Mapping[str, File]]) -> Iterator[FileDifference]:
    (first, ours), (second, theirs) = a, b
    for name in {**ours, **theirs}:
        mine, yours = ours.get(name), theirs.get(name)
        if mine is None or yours is None:
            if not any(one is not None and written.tensors(one) for one in (mine, yours)):
                yield FileDifference(path=name, runs=(first, second), only_run=second if mine is None else first)
            continue
        parts = _differing(mine, yours)
        problem = mine.problem or yours.problem
        if parts or (written.digest(mine) != written.digest(yours) and not _decides(mine, yours)):
            more = max(0, len(parts) - MOST_PARTS)
            yield FileDifference(
                path=name, runs=(first, second), parts=tuple(parts[:MOST_PARTS]), more=more, problem=problem
            )


def _decides(mine: File, yours: File) -> bool:
    """Whether the two are compared by their tensors anyway."""
    return bool(written.tensors(mine) or written.tensors(yours))


def _differing(mine: File, yours: File) -> list[str]:
    a, b = (
        {value.name: value.digest for value in file.values if value.role is not Role.RESULT} for file in (mine, yours)
    )
    return [name for name in {**a, **b} if name and a.get(name) != b.get(name)]


def printed(folders: Folders) -> PrintedDifference | None:
    """Return the first lines on stdout that differ between the first run and one of the others."""
    (first, log), *others = folders.items()
    for run, other in others:
        lines = printed_lines.difference(log / "stdout.log", other / "stdout.log")
        if lines is not None:
            return PrintedDifference(runs=(first, run), lines=lines)
    return None
