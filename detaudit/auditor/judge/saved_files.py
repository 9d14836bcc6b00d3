"""The saved files of two runs that were not audited together, such as a baseline and a run of today."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from detaudit.auditor.evidence.file_names import matched
from detaudit.model import Difference, RunRecord, Stage, Training

Digests = dict[Stage, dict[int, tuple[str, ...]]]


def shared(a: RunRecord, b: RunRecord, *, renamed: bool, ended: bool) -> tuple[RunRecord, RunRecord]:
    """Return both records with the saved files that both have, without any if one was not followed to its end.

    A baseline may be older than this comparison, and a run that was stopped saved less. If they are to be
    ``renamed``, files whose names depend on the run have one name in both.
    """
    ours, theirs = _part(a), _part(b)
    if ours is None or theirs is None or not ended:
        return _without(a), _without(b)
    return (a, _renamed(b, ours, theirs)) if renamed else (a, b)


def only_one(a: RunRecord, b: RunRecord) -> Difference | None:
    """Return that only one of two runs, which match otherwise, saved files; None if both did, or neither."""
    parts = [(record, part) for record in (a, b) if (part := _part(record)) is not None]
    if len(parts) != 1:
        return None
    record, part = parts[0]
    names = [line.partition(" ")[2] for line in part.digests[Stage.SAVED][0]]
    return Difference(rank=record.parts.index(part), step=0, stage=Stage.SAVED, site=some(names))


def some(names: Sequence[str]) -> str:
    """Return the first of the names of what differs, and the number of others."""
    first, *more = names
    return f"{first} and {len(more)} more" if more else first


def _renamed(b: RunRecord, ours: Training, theirs: Training) -> RunRecord:
    names = matched(_contents(ours), _contents(theirs))
    split = [line.partition(" ") for line in theirs.digests[Stage.SAVED][0]]
    parts = [(digest, *file.partition(": ")) for digest, _, file in split]
    lines = sorted((names[file], f"{digest} {names[file]}{colon}{rest}") for digest, file, colon, rest in parts)
    digests: Digests = {Stage.SAVED: {0: tuple(line for _, line in lines)}}
    part = replace(theirs, digests=digests, final=ours.final if digests == ours.digests else theirs.final)
    return replace(b, unhooked=tuple(part if one is theirs else one for one in b.unhooked))


def by_file(part: Training) -> Training:
    """Return saved files with one digest for each, as a baseline keeps them."""
    files = tuple(f"{digest} {name}" for name, digest in sorted(_contents(part).items()))
    return replace(part, digests={Stage.SAVED: {0: files}})


def _part(record: RunRecord) -> Training | None:
    return next((part for part in record.unhooked if part.framework == Stage.SAVED), None)


def _without(record: RunRecord) -> RunRecord:
    return replace(record, unhooked=tuple(part for part in record.unhooked if part.framework != Stage.SAVED))


def _contents(part: Training) -> dict[str, str]:
    """Return one digest for each file: its own, or that of its tensors."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in part.digests[Stage.SAVED][0]:
        digest, _, file = line.partition(" ")
        name, _, tensor = file.partition(": ")
        found[name].append(f"{digest} {tensor}" if tensor else digest)
    return {
        name: lines[0] if len(lines) == 1 and " " not in lines[0] else _digest(lines) for name, lines in found.items()
    }


def _digest(lines: list[str]) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
