"""Code whose result depends on hashes or addresses, found by reading it: no hook can see a set being iterated."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.source.scan import EMPTY, HASH, ID, NUMPY, SET, UNSEEDED, Found, in_text
from detaudit.model import Source

MOST_BYTES = 1_000_000

SET_WORDS = "iterates over a set, whose order changes with PYTHONHASHSEED if it holds strings"
SET_OF_OBJECTS = "iterates over a set, whose order changes with their addresses if it holds objects"
_WORDS = {
    SET: SET_WORDS,
    HASH: "calls hash(), which changes with PYTHONHASHSEED for strings",
    ID: "computes with id(), an address, which changes from run to run",
    UNSEEDED: "calls {}() without a seed",
    EMPTY: "calls {}(), which holds what was in memory until it is written",
}
_ORDER = {UNSEEDED: 0, EMPTY: 2}


@dataclass(frozen=True)
class Fixed:
    """What the runs held still: the salt of hash(str), the addresses of objects, the entropy of NumPy and of torch.

    ``filled`` has the calls whose memory was filled.
    """

    hash_seed: bool = False
    addresses: bool = False
    numpy_entropy: bool = False
    torch_entropy: bool = False
    filled: frozenset[str] = frozenset()

    def words(self, kind: str, name: str) -> str:
        """Return what a candidate comes to in such runs, ``""`` for nothing."""
        if kind == SET and self.hash_seed:
            return "" if self.addresses else SET_OF_OBJECTS
        unseeded = self.numpy_entropy if name in NUMPY else self.torch_entropy
        filled = any(name.startswith(call) for call in self.filled)
        fixed = {HASH: self.hash_seed, ID: self.addresses, UNSEEDED: unseeded, EMPTY: filled}
        return "" if fixed.get(kind) else _WORDS[kind].format(name)


def read(root: Path, files: Iterable[str], fixed: Fixed) -> tuple[Source, ...]:
    """Return the candidates in these files, relative to ``root`` or absolute, that nothing holds still.

    A file that cannot be read or parsed holds none. Generators without a seed come first, and fresh memory last: most
    of it is written before it is read.
    """
    found = []
    for file in files:
        for line, kind, name in scanned(root / file):
            words = fixed.words(kind, name)
            if words:
                found.append((_ORDER.get(kind, 1), Source(file=file, line=line, what=words, kind="candidate")))
    return tuple(source for _, source in sorted(found, key=lambda pair: pair[0]))


def scanned(path: Path) -> tuple[Found, ...]:
    """Return what the code of a file shows, by line; nothing where it cannot be read or parsed."""
    try:
        text = path.read_bytes()
        return in_text(text) if len(text) <= MOST_BYTES else ()
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
