"""Single values of a file as parts, and the blocks that many of them are folded into."""

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from detaudit.runs.formats import NUMBER, TEXT, Part, unique

MOST_SINGLE = 100_000
"""Values of one file that are parts of their own; what follows is folded."""

BLOCK = 4096
"""Values, lines or rows that are folded into one part."""

MOST_SERIES = 10_000
"""Names that blocks are kept apart by."""

MOST_SHOWN = 4096
"""Characters of a text that a part shows; of a longer one it has the bytes only."""

NUMERAL = re.compile(
    r"\s*[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|nan|inf(?:inity)?)\s*", re.IGNORECASE
)

LABEL = re.compile(r"[^\W\d_][\w ./()%@-]{0,63}")
"""A text beside a number that may name it."""


def number(name: str, digits: str) -> Part:
    """Return one number, which is compared by its digits."""
    return Part(name, iter([digits.encode("utf-8", "surrogatepass")]), NUMBER, (), digits.strip())


def text(name: str, value: str) -> Part:
    """Return one text."""
    return Part(name, iter([value.encode("utf-8", "surrogatepass")]), TEXT, (), shown(value))


def literal(name: str, spelling: str) -> Part:
    """Return a value that is neither a number nor a text, such as ``null``; it differs from a text of its spelling."""
    return Part(name, iter([b"\0" + spelling.encode("utf-8", "surrogatepass")]), TEXT, (), shown(spelling))


def number_or_text(name: str, value: str) -> Part:
    """Return a value of a format that does not tell numbers from texts."""
    return number(name, value) if len(value) < MOST_SHOWN and NUMERAL.fullmatch(value) else text(name, value)


def opaque(name: str, data: bytes) -> Part:
    """Return bytes of which only the digest says something."""
    return Part(name, iter([data]))


def shown(value: str) -> str:
    """Return a short text as it can be stored anywhere, ``""`` for a long one."""
    if len(value) > MOST_SHOWN:
        return ""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def printable(name: str) -> str:
    """Return a name on one line, without what a terminal would obey."""
    if name.isprintable():
        return name
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in name)


def folded(values: Iterable[tuple[str, Part]]) -> Iterator[Part]:
    """Yield the first values as they are, and the numbers and texts that follow in blocks, each of one series.

    The series of a value is its name with ``*`` for what counts it: ``[*].loss`` of ``[3].loss``. The pieces of values
    must not be read from a file.
    """
    return unique(_folded(iter(values)))


def _folded(values: Iterator[tuple[str, Part]]) -> Iterator[Part]:
    series: dict[str, _Series] = {}
    for name, part in itertools.islice(values, MOST_SINGLE):
        _series(series, name).skip()
        yield part
    for name, part in values:
        if part.dtype not in (NUMBER, TEXT) or part.generator:  # an array
            yield part
            continue
        one = _series(series, name)
        one.add(part)
        if one.folded == BLOCK:
            yield one.block()
    for one in series.values():
        if one.folded:
            yield one.block()


def _series(series: "dict[str, _Series]", name: str) -> "_Series":
    if name not in series and len(series) >= MOST_SERIES:
        name = "others"
    if name not in series:
        series[name] = _Series(name)
    return series[name]


def digest_of_block(name: str, digest: bytes, count: int, numbers: bool) -> Part:
    """Return a part that stands for ``count`` values."""
    return Part(name, iter([digest]), NUMBER if numbers else "", (count,))


@dataclass
class _Series:
    """The values of one series, and the block of them that is being folded."""

    name: str
    count: int = 0
    folded: int = 0
    numbers: bool = True
    digest: "hashlib.blake2b" = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def skip(self) -> None:
        self.count += 1

    def add(self, part: Part) -> None:
        data = b"".join(part.pieces)
        self.digest.update(f"{part.name!r} {part.dtype} {part.shape} {len(data)}\n".encode())
        self.digest.update(data)
        self.numbers &= part.dtype == NUMBER
        self.count += 1
        self.folded += 1

    def block(self) -> Part:
        first = self.count - self.folded + 1
        name = (
            f"{self.name}: values {first:,} to {self.count:,}" if self.name else f"values {first:,} to {self.count:,}"
        )
        part = digest_of_block(name, self.digest.digest(), self.folded, self.numbers)
        self.folded, self.numbers, self.digest = 0, True, hashlib.blake2b(digest_size=16)
        return part
