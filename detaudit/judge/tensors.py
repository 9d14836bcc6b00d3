"""How far two tensors are apart."""

import math
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from detaudit.model import FirstMismatch, Number, TensorDifference, TensorGrid, as_number, digits

# How far the elements of two arrays are apart, by NumPy: the same as distances.py finds without it, in less time.
#
# NumPy is not required. Where it is not installed, or for types that it computes differently, there is no answer here.


_SIGNED = {"int8": 1, "int16": 2, "int32": 4}
_UNSIGNED = {"bool": 1, "uint8": 1, "uint16": 2, "uint32": 4}
_FLOAT_SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_SIZES = {**_SIGNED, **_UNSIGNED, **_FLOAT_SIZES}
"""The types whose elements and distances are exact in a float64, or whose distances are rounded as Python rounds."""


class Distances(NamedTuple):
    """The elements of two arrays whose bits differ: their ``places``, and the largest distances between them.

    ``nans`` is the number of those that are not a number on one side or both, which have no distance. ``max_ulp`` is
    None if they are no floats, or none has a distance; ``ulps`` counts the distances by their length in bits.
    """

    places: list[int]
    nans: int = 0
    max_abs: float | int = 0
    max_rel: float = 0.0
    max_ulp: int | None = None
    ulps: Sequence[int] = ()


@cache
def _numpy() -> Any:
    try:
        import numpy
    except Exception:  # noqa: BLE001 - whatever a broken installation raises
        return None
    return numpy


def distances(dtype: str, size: int, a: bytes, b: bytes) -> Distances | None:
    """Return the distances between elements of ``size`` bytes, None if NumPy cannot say."""
    np = _numpy()
    if np is None or _SIZES.get(dtype) != size:
        return None
    x, y = (np.frombuffer(side, f"u{size}") for side in (a, b))
    places = np.flatnonzero(x != y)
    words = x[places], y[places]
    with np.errstate(all="ignore"):
        x, y = (_values(np, dtype, side) for side in words)
        known = ~(np.isnan(x) | np.isnan(y))
        x, y = x[known], y[known]
        if not x.size:
            return Distances(places.tolist(), nans=places.size)
        apart, larger = np.abs(x - y), np.maximum(np.abs(x), np.abs(y))
        relative = np.where(np.isinf(apart), np.inf, np.where(larger > 0, apart / larger, 0.0))
    measured = Distances(
        places.tolist(),
        nans=places.size - x.size,
        max_abs=float(apart.max()),
        max_rel=float(relative.max()),
    )
    if dtype not in _FLOAT_SIZES:
        return measured
    ulps = _ulps(np, *(side[known].view(f"i{size}") for side in words))
    return measured._replace(max_ulp=int(ulps.max()), ulps=_by_length_of_array(np, ulps))


def _values(np: Any, dtype: str, words: Any) -> Any:
    """Return elements as float64."""
    if dtype == "bfloat16":  # the upper half of a float32
        return (words.astype("u4") << 16).view("f4").astype("f8")
    kind = "f" if dtype in _FLOAT_SIZES else "i" if dtype in _SIGNED else "u"
    return words.view(f"{kind}{words.itemsize}").astype("f8")


def _ulps(np: Any, x: Any, y: Any) -> Any:
    """Return the distances of floats among all floats of their type; both zeros have one rank."""
    least = np.iinfo(x.dtype).min
    ranks = [np.where(side >= 0, side, least - side).astype("i8") for side in (x, y)]
    # As unsigned numbers, because a distance may be too large for signed ones.
    return np.maximum(*ranks).astype("u8") - np.minimum(*ranks).astype("u8")


def _by_length_of_array(np: Any, ulps: Any) -> list[int]:
    """Return how many numbers there are of each length in bits. Halves of 32 bits are exact as floats."""
    high, low = ulps >> np.uint64(32), ulps & np.uint64(0xFFFFFFFF)
    of_high, of_low = (np.frexp(half.astype("f8"))[1] for half in (high, low))
    counts: list[int] = np.bincount(np.where(high > 0, of_high + 32, of_low)).tolist()
    return counts


# In which rows and columns of a tensor elements differ.


MOST = 64
"""Equal parts of the rows, and of the columns, in which elements that differ are counted."""


def sides(shape: Sequence[int]) -> tuple[int, int] | None:
    """Return the rows and the columns of a tensor as a matrix, None if it has only one row or one column.

    Its first dimensions are the rows and the others the columns, as many of either as makes the smaller side longest.
    """
    splits = [(math.prod(shape[:axis]), math.prod(shape[axis:])) for axis in range(1, len(shape))]
    best = max(splits, key=min, default=(1, 1))
    return best if min(best) > 1 else None


class Grid:
    """Counts elements by their rows and columns, in at most MOST x MOST parts."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self._high, self._wide = min(MOST, rows), min(MOST, columns)
        self._counts: Counter[int] = Counter()

    def add(self, places: Iterable[int]) -> None:
        """Add elements by their places in C order."""
        rows, columns, high, wide = self._rows, self._columns, self._high, self._wide
        self._counts.update(
            index // columns * high // rows * wide + index % columns * wide // columns for index in places
        )

    def result(self) -> TensorGrid:
        """Return the elements in each part."""
        cells = [self._counts[cell] for cell in range(self._high * self._wide)]
        rows = tuple(tuple(cells[start : start + self._wide]) for start in range(0, len(cells), self._wide))
        return TensorGrid(rows=self._rows, columns=self._columns, counts=rows)


# How two tensors differ, from their bytes alone.


PIECE = 4096
"""Elements that are compared at a time, if any of them differs."""

FEW = 4
"""Elements that differ which are reported one by one."""

SLICES = 256
"""Equal parts of a tensor in which elements that differ are counted."""

_WORDS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FLOATS = {"float64": "d", "float32": "f", "float16": "e", "bfloat16": "H"}
_INTEGERS = {
    "bool": "B", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "int8": "b", "int16": "h", "int32": "i", "int64": "q",
}  # fmt: skip
_COMPLEX = {"complex64": "f", "complex128": "d"}

Value = float | int | complex


def difference(dtype: str, shape: Sequence[int], a: bytes, b: bytes) -> TensorDifference | None:
    """Return how two tensors of one type and shape differ, None if all their bits are equal.

    ``dtype`` is in NumPy's spelling, or ``bfloat16``; of a type that is not known here only the bits are compared. The
    bytes are in C order and the machine's own byte order. Raises ValueError if they do not fill the shape.
    """
    total = math.prod(shape)
    if len(a) != len(b) or (len(a) % total if total else a):
        raise ValueError(f"{len(a)} and {len(b)} bytes do not make {total} elements each")
    if a == b:
        return None
    size = len(a) // total
    matrix = sides(shape)
    summary = _Distances(dtype, total, Grid(*matrix) if matrix is not None else None)
    for start in range(0, total, PIECE):
        ours, theirs = (side[start * size : (start + PIECE) * size] for side in (a, b))
        if ours != theirs:
            apart = distances(dtype, size, ours, theirs)
            summary.add(start, apart or _distances(dtype, size, ours, theirs))
    elements = [
        _mismatch(dtype, shape, index, *(side[index * size : (index + 1) * size] for side in (a, b)))
        for index in summary.few
    ]
    return TensorDifference(
        mismatched=summary.mismatched,
        total=total,
        max_abs=summary.number(summary.max_abs),
        max_rel=summary.number(summary.max_rel),
        max_ulp=summary.max_ulp,
        nans=summary.nans,
        first=elements[0],
        next=tuple(elements[1:]),
        ulps=tuple(summary.ulps[length] for length in range(max(summary.ulps) + 1)) if summary.ulps else (),
        slices=tuple(summary.slices[number] for number in range(min(SLICES, total))),
        grid=summary.grid.result() if summary.grid is not None else None,
    )


def _distances(dtype: str, size: int, a: bytes, b: bytes) -> Distances:
    """Return the distances between elements of ``size`` bytes, none if their type is not known here."""
    places = [i for i, (x, y) in enumerate(zip(_words(a, size), _words(b, size), strict=True)) if x != y]
    a, b = (b"".join([side[i * size : (i + 1) * size] for i in places]) for side in (a, b))
    ours, theirs = values(dtype, a), values(dtype, b)
    if ours is None or theirs is None:
        return Distances(places)
    nans, max_rel, ulps = 0, 0.0, list[int]()
    max_abs: float | int = 0
    for index, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if x != x or y != y:
            nans += 1
            continue
        distance = _distance(x, y)
        larger = max(abs(x), abs(y))
        max_abs = max(max_abs, distance)
        max_rel = max(max_rel, math.inf if distance == math.inf else distance / larger if larger else 0.0)
        if dtype in _FLOATS:
            at = slice(index * size, (index + 1) * size)
            ulps.append(abs(_rank(a[at]) - _rank(b[at])))
    return Distances(places, nans, max_abs, max_rel, max(ulps, default=None), _by_length(ulps))


def _by_length(ulps: Sequence[int]) -> list[int]:
    """Return how many numbers there are of each length in bits."""
    counts = Counter(ulp.bit_length() for ulp in ulps)
    return [counts[length] for length in range(max(counts) + 1)] if counts else []


def _words(raw: bytes, size: int) -> Sequence[int | bytes]:
    if size in _WORDS:
        return _unpacked(_WORDS[size], raw)
    return [raw[i : i + size] for i in range(0, len(raw), size)]


def values(dtype: str, raw: bytes) -> Sequence[Value] | None:
    """Return the elements in ``raw``, None if their type is not known here."""
    if dtype == "bfloat16":  # the upper half of a float32
        words = _unpacked("H", raw)
        return _unpacked("f", struct.pack(f"={len(words)}I", *[word << 16 for word in words]))
    if dtype in _COMPLEX:
        parts = iter(_unpacked(_COMPLEX[dtype], raw))
        return [complex(real, imaginary) for real, imaginary in zip(parts, parts, strict=True)]
    code = _FLOATS.get(dtype) or _INTEGERS.get(dtype)
    return _unpacked(code, raw) if code else None


def _unpacked(code: str, raw: bytes) -> tuple[Any, ...]:
    size = struct.calcsize(f"={code}")
    if len(raw) % size:
        raise ValueError(f"{len(raw)} bytes do not make elements of {size} bytes")
    return struct.unpack(f"={len(raw) // size}{code}", raw)


@dataclass
class _Distances:
    """The elements that differ: their number, the first few places, and the largest distances."""

    dtype: str
    total: int
    grid: Grid | None = None
    mismatched: int = 0
    few: list[int] = field(default_factory=list)
    nans: int = 0
    max_abs: float | int = 0
    max_rel: float = 0.0
    max_ulp: int | None = None
    ulps: Counter[int] = field(default_factory=Counter)
    slices: Counter[int] = field(default_factory=Counter)

    def add(self, start: int, piece: Distances) -> None:
        """Add what differs in the elements from ``start`` on."""
        self.mismatched += len(piece.places)
        self.few += [start + index for index in piece.places[: FEW - len(self.few)]]
        self.nans += piece.nans
        self.max_abs, self.max_rel = max(self.max_abs, piece.max_abs), max(self.max_rel, piece.max_rel)
        if piece.max_ulp is not None:
            self.max_ulp = max(self.max_ulp or 0, piece.max_ulp)
        self.ulps.update(dict(enumerate(piece.ulps)))
        slices = min(SLICES, self.total)
        self.slices.update((start + index) * slices // self.total for index in piece.places)
        if self.grid is not None:
            self.grid.add(start + index for index in piece.places)

    def number(self, value: float) -> Number:
        """Return a distance as reports have it, None if there is none."""
        known = self.dtype in {**_FLOATS, **_INTEGERS, **_COMPLEX}
        return as_number(float(value)) if known and self.nans < self.mismatched else None


def _distance(x: Value, y: Value) -> float | int:
    try:
        apart = abs(x - y)
    except OverflowError:  # of complex numbers
        return math.inf
    return math.inf if apart != apart else apart  # infinities in both parts


def _rank(raw: bytes) -> int:
    """Return the rank of a float among all floats of its type; both zeros have rank 0."""
    word, sign = int.from_bytes(raw, sys.byteorder), 1 << (8 * len(raw) - 1)
    return word if word < sign else sign - word


def _mismatch(dtype: str, shape: Sequence[int], position: int, a: bytes, b: bytes) -> FirstMismatch:
    index = []
    for length in reversed(shape):
        position, at = divmod(position, length)
        index.append(at)
    return FirstMismatch(
        index=tuple(reversed(index)),
        values=(_text(dtype, a), _text(dtype, b)),
        bits=(_bits(dtype, a), _bits(dtype, b)),
    )


def _bits(dtype: str, raw: bytes) -> str:
    half = len(raw) // 2
    parts = (raw[:half], raw[half:]) if dtype in _COMPLEX else (raw,)
    return " ".join(f"0x{int.from_bytes(part, sys.byteorder):0{2 * len(part)}x}" for part in parts)


def _text(dtype: str, raw: bytes) -> str:
    elements = values(dtype, raw)
    if elements is None:
        return ""
    (value,) = elements
    if dtype == "bool":
        return str(bool(value))
    return digits(as_number(value)) if isinstance(value, float) else str(value)
