"""Match the files of two runs whose names depend on the run: on the time, the process ID, or a random number."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

_CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<![a-z0-9])(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?=[^a-z])"
    r"|(?<![a-z0-9])tmp[a-z0-9_]{8}(?![a-z0-9])"
    r"|(?<![a-z0-9])(?=[a-z]*[0-9]+[a-z]+[a-z0-9]*)[a-z0-9]{6,}(?![a-z0-9])"
    r"|[0-9]+",
    re.IGNORECASE,
)


def _pattern(path: str) -> str:
    """Return a path without what may be a date, a number or a random name."""
    return _CHANGING.sub("*", path)


_CLASSES: tuple[Callable[[str], str], ...] = (
    _pattern,
    lambda path: _pattern(PurePosixPath(path).name),
    lambda path: PurePosixPath(path).suffix,
)
"""What two names may have in common, the closest first."""


def matched(known: Mapping[str, str], digests: Mapping[str, str]) -> dict[str, str]:
    """Return for each file of ``digests`` the name in ``known`` that it is compared with, else its own.

    Both map names to digests, in the order in which the files were written. Files of one kind whose names are not all
    the same match if their contents do, the others in this order.
    """
    names: dict[str, str] = {}
    ours, theirs = dict(known), dict(digests)
    for kind in _CLASSES:
        for mine, yours in _alike(kind, ours, theirs):
            names |= _pairs({name: ours[name] for name in mine}, {name: theirs[name] for name in yours})
        taken = set(names.values())
        ours = {name: digest for name, digest in ours.items() if name not in taken}
        theirs = {name: digest for name, digest in theirs.items() if name not in names}
    return {name: names.get(name, name) for name in digests}


def _alike(
    kind: Callable[[str], str], ours: Mapping[str, str], theirs: Mapping[str, str]
) -> list[tuple[list[str], list[str]]]:
    """Return the names of both sides that have the same kind."""
    classes: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, names in enumerate((ours, theirs)):
        for name in names:
            classes[kind(name)][side].append(name)
    return [both for both in classes.values() if all(both)]


def _pairs(ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    """Match files of one kind: with one name and content, with one content, with one name, in their order."""
    if ours.keys() == theirs.keys():
        return {name: name for name in theirs}
    pairs = {name: name for name, digest in theirs.items() if ours.get(name) == digest}
    free = {name: None for name in ours if name not in pairs}
    by_content: defaultdict[str, list[str]] = defaultdict(list)
    for name in reversed(free):
        by_content[ours[name]].append(name)
    for name, digest in theirs.items():
        if name not in pairs and by_content[digest]:
            pairs[name] = by_content[digest].pop()
            del free[pairs[name]]
    for name in [name for name in theirs if name not in pairs and name in free]:
        pairs[name] = name
        del free[name]
    rest = (name for name in theirs if name not in pairs)
    return pairs | dict(zip(rest, list(free), strict=False))
