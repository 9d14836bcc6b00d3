"""How far the elements of two arrays are apart, by NumPy: the same as distances.py finds without it, in less time.

NumPy is not required. Where it is not installed, or for types that it computes differently, there is no answer here.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

_SIGNED = {"int8": 1, "int16": 2, "int32": 4}
_UNSIGNED = {"bool": 1, "uint8": 1, "uint16": 2, "uint32": 4}
_FLOATS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_SIZES = {**_SIGNED, **_UNSIGNED, **_FLOATS}
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
    found = Distances(
        places.tolist(),
        nans=places.size - x.size,
        max_abs=float(apart.max()),
        max_rel=float(relative.max()),
    )
    if dtype not in _FLOATS:
        return found
    ulps = _ulps(np, *(side[known].view(f"i{size}") for side in words))
    return found._replace(max_ulp=int(ulps.max()), ulps=_by_length(np, ulps))


def _values(np: Any, dtype: str, words: Any) -> Any:
    """Return elements as float64."""
    if dtype == "bfloat16":  # the upper half of a float32
        return (words.astype("u4") << 16).view("f4").astype("f8")
    kind = "f" if dtype in _FLOATS else "i" if dtype in _SIGNED else "u"
    return words.view(f"{kind}{words.itemsize}").astype("f8")


def _ulps(np: Any, x: Any, y: Any) -> Any:
    """Return the distances of floats among all floats of their type; both zeros have one rank."""
    least = np.iinfo(x.dtype).min
    ranks = [np.where(side >= 0, side, least - side).astype("i8") for side in (x, y)]
    # As unsigned numbers, because a distance may be too large for signed ones.
    return np.maximum(*ranks).astype("u8") - np.minimum(*ranks).astype("u8")


def _by_length(np: Any, ulps: Any) -> list[int]:
    """Return how many numbers there are of each length in bits. Halves of 32 bits are exact as floats."""
    high, low = ulps >> np.uint64(32), ulps & np.uint64(0xFFFFFFFF)
    of_high, of_low = (np.frexp(half.astype("f8"))[1] for half in (high, low))
    found: list[int] = np.bincount(np.where(high > 0, of_high + 32, of_low)).tolist()
    return found
