"""Which lines of the user's code bring randomness that no seed fixed, from what several runs saw."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from detaudit.auditor.traces import Process
from detaudit.model import Source

Seen = dict[tuple[str, int, str], tuple[str, ...]]
"""(file, line, function) and the seeds it was given, ``""`` for none."""


def seen_in(processes: Iterable[Process], cwd: Path) -> Seen:
    """Return the seeds of one run; files below its working directory are told relative to that."""
    found: Seen = {}
    for process in processes:
        for source in process.sources:
            path = os.path.relpath(source.file, cwd) if source.file.startswith(f"{cwd}{os.sep}") else source.file
            key = (path, source.line, source.what)
            found[key] = (*found.get(key, ()), source.value)
    return found


def unfixed(runs: Sequence[Seen]) -> tuple[Source, ...]:
    """Return the lines that took no seed, or not the same one in every run."""
    lines = sorted({key for run in runs for key in run})
    sources = []
    for file, line, what in lines:
        values = [run.get((file, line, what), ()) for run in runs]
        if any("" in given for given in values):
            sources.append(Source(file=file, line=line, what=f"{what}() without a seed"))
        elif len({given for given in values if given}) > 1:
            sources.append(Source(file=file, line=line, what=f"{what}() with another seed in each run"))
    return tuple(sources)
