"""What the tests of readers share."""

from pathlib import Path

from hypothesis import strategies as st

from detaudit.runs import formats
from detaudit.runs.formats import BROKEN, UnusableError

SAMPLES = Path(__file__).parent / "samples"

Read = dict[str, tuple[str, str, bytes]]


def parts(path: Path) -> tuple[str, Read]:
    """Return the format of a file, and the type, the text and the bytes of each of its parts."""
    by, found = formats.parts(path)
    read: Read = {}
    for part in found:
        assert part.name not in read
        read[part.name] = part.dtype, part.text, b"".join(part.pieces)
        assert "\n" not in part.name
        part.name.encode(), part.text.encode()  # can be stored
    return by, read


def texts(path: Path) -> dict[str, str]:
    return {name: text for name, (_, text, _) in parts(path)[1].items()}


def written(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def differing(one: Path, other: Path) -> list[str]:
    """Return the names of the parts that are not in both, or that differ."""
    first, second = parts(one)[1], parts(other)[1]
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def mutations() -> st.SearchStrategy[list[tuple[int, int]]]:
    """Places and bytes that are written there; a place beyond the end cuts the file instead."""
    return st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 511)), min_size=1, max_size=8)


def mutated(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    changed = bytearray(data)
    for place, byte in changes:
        if byte > 255:
            del changed[place % (len(changed) + 1) :]
        elif changed:
            changed[place % len(changed)] = byte
    return bytes(changed)


def is_refused_or_read(path: Path) -> bool:
    """Read a damaged file. Raises what no reader should."""
    try:
        parts(path)
    except (*BROKEN, UnusableError):
        return False
    return True
