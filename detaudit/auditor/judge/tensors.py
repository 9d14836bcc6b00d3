"""How two tensors differ, from their bytes alone."""

import math
import struct
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from detaudit.auditor.judge import array_distances, tensor_grid
from detaudit.auditor.judge.array_distances import Distances
from detaudit.model import FirstMismatch, Number, TensorDifference, as_number, digits

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
    matrix = tensor_grid.sides(shape)
    found = _Distances(dtype, total, tensor_grid.Grid(*matrix) if matrix is not None else None)
    for start in range(0, total, PIECE):
        ours, theirs = (side[start * size : (start + PIECE) * size] for side in (a, b))
        if ours != theirs:
            apart = array_distances.distances(dtype, size, ours, theirs)
            found.add(start, apart or _distances(dtype, size, ours, theirs))
    elements = [
        _mismatch(dtype, shape, place, *(side[place * size : (place + 1) * size] for side in (a, b)))
        for place in found.few
    ]
    return TensorDifference(
        mismatched=found.mismatched,
        total=total,
        max_abs=found.number(found.max_abs),
        max_rel=found.number(found.max_rel),
        max_ulp=found.max_ulp,
        nans=found.nans,
        first=elements[0],
        next=tuple(elements[1:]),
        ulps=tuple(found.ulps[length] for length in range(max(found.ulps) + 1)) if found.ulps else (),
        slices=tuple(found.slices[number] for number in range(min(SLICES, total))),
        grid=found.grid.result() if found.grid is not None else None,
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
    for place, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if x != x or y != y:
            nans += 1
            continue
        distance = _distance(x, y)
        larger = max(abs(x), abs(y))
        max_abs = max(max_abs, distance)
        max_rel = max(max_rel, math.inf if distance == math.inf else distance / larger if larger else 0.0)
        if dtype in _FLOATS:
            at = slice(place * size, (place + 1) * size)
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
    grid: tensor_grid.Grid | None = None
    mismatched: int = 0
    few: list[int] = field(default_factory=list)
    nans: int = 0
    max_abs: float | int = 0
    max_rel: float = 0.0
    max_ulp: int | None = None
    ulps: Counter[int] = field(default_factory=Counter)
    slices: Counter[int] = field(default_factory=Counter)

    def add(self, start: int, found: Distances) -> None:
        """Add what differs in the elements from ``start`` on."""
        self.mismatched += len(found.places)
        self.few += [start + place for place in found.places[: FEW - len(self.few)]]
        self.nans += found.nans
        self.max_abs, self.max_rel = max(self.max_abs, found.max_abs), max(self.max_rel, found.max_rel)
        if found.max_ulp is not None:
            self.max_ulp = max(self.max_ulp or 0, found.max_ulp)
        self.ulps.update(dict(enumerate(found.ulps)))
        slices = min(SLICES, self.total)
        self.slices.update((start + place) * slices // self.total for place in found.places)
        if self.grid is not None:
            self.grid.add(start + place for place in found.places)

    def number(self, value: float) -> Number:
        """Return a distance as reports have it, None if there is none."""
        known = self.dtype in {**_FLOATS, **_INTEGERS, **_COMPLEX}
        return as_number(float(value)) if known and self.nans < self.mismatched else None


def _distance(x: Value, y: Value) -> float | int:
    try:
        found = abs(x - y)
    except OverflowError:  # of complex numbers
        return math.inf
    return math.inf if found != found else found  # infinities in both parts


def _rank(raw: bytes) -> int:
    """Return the rank of a float among all floats of its type; both zeros have rank 0."""
    word, sign = int.from_bytes(raw, sys.byteorder), 1 << (8 * len(raw) - 1)
    return word if word < sign else sign - word


def _mismatch(dtype: str, shape: Sequence[int], place: int, a: bytes, b: bytes) -> FirstMismatch:
    index = []
    for length in reversed(shape):
        place, at = divmod(place, length)
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
    found = values(dtype, raw)
    if found is None:
        return ""
    (value,) = found
    if dtype == "bool":
        return str(bool(value))
    return digits(as_number(value)) if isinstance(value, float) else str(value)
