"""Code whose result depends on hashes, addresses or memory, found by reading it: no hook sees a set being iterated."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.source.scan import OF_TEXTS, Found, in_text
from detaudit.model import Source, SourceKind, SourceMatch

MOST_BYTES = 1_000_000

_ORDER = {SourceKind.UNSEEDED: 0, SourceKind.UNINITIALIZED: 2}


@dataclass(frozen=True)
class Pinned:
    """What cannot differ between the runs: the string hash seed, the addresses, and the lines that the flags fix."""

    hash_seed: bool = False
    addresses: bool = False
    fixed: tuple[SourceMatch, ...] = ()

    def suspect(self, source: Source) -> Source | None:
        """Return a line as the suspect that it is in such runs, None if it is none."""
        match source.kind:
            case SourceKind.SET_ORDER if self.hash_seed:
                # Strings keep their order now, objects do not.
                kept = self.addresses or source.call == OF_TEXTS
                return None if kept else replace_kind(source, SourceKind.OBJECT_SET_ORDER)
            case SourceKind.SET_ORDER | SourceKind.ADDRESS:
                return None if source.kind is SourceKind.ADDRESS and self.addresses else source
            case SourceKind.HASH:
                return None if self.hash_seed else source
            case _:
                return None if any(match.matches(source) for match in self.fixed) else source


def replace_kind(source: Source, kind: SourceKind) -> Source:
    """Return the same line as of another kind."""
    return Source(file=source.file, line=source.line, kind=kind, call=source.call, suspect=source.suspect)


def read(root: Path, files: Iterable[str], pinned: Pinned) -> tuple[Source, ...]:
    """Return the suspects in these files, relative to ``root`` or absolute.

    A file that cannot be read or parsed has none. Generators without a seed come first, and uninitialized memory last:
    most of it is written before it is read.
    """
    found = []
    for file in files:
        for line, kind, call in scanned(root / file):
            source = pinned.suspect(Source(file=file, line=line, kind=kind, call=call, suspect=True))
            if source is not None and source.call == OF_TEXTS:
                source = Source(file=file, line=line, kind=source.kind, suspect=True)
            if source is not None:
                found.append((_ORDER.get(kind, 1), source))
    return tuple(source for _, source in sorted(found, key=lambda pair: pair[0]))


def scanned(path: Path) -> tuple[Found, ...]:
    """Return what the code of a file shows, by line; nothing if it cannot be read or parsed."""
    try:
        text = path.read_bytes()
        return in_text(text) if len(text) <= MOST_BYTES else ()
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
