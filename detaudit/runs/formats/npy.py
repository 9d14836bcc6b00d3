"""Read npy: one NumPy array with a Python literal as header. An array of objects is a pickle after it.

The layout is at https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
"""

import ast
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from detaudit.runs.formats import Part, extents, pickles, pieces, unique
from detaudit.runs.formats.arrays import contents

MOST_HEADER = 2**20
MOST_ARRAYS = 10_000
_MAGIC = b"\x93NUMPY"
_TYPES = {"b": ("bool",), "u": ("uint8", "uint16", "uint32", "uint64"), "i": ("int8", "int16", "int32", "int64")}
_TYPES |= {"f": ("float16", "float32", "float64"), "c": ("complex64", "complex128")}
_CODES = {dtype: code for code, dtypes in _TYPES.items() for dtype in dtypes}
"""The letters that NumPy has for those of its types that other frameworks name as it does."""


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    with path.open("rb") as file:
        yield from unique(arrays(file, ""))


def arrays(file: IO[bytes], name: str) -> Iterator[Part]:
    """Yield the arrays that start here and fill the rest of ``file``; numpy.save may be called for it several times."""
    count = 0
    while start := file.read(len(_MAGIC) + 2):
        count += 1
        if count > MOST_ARRAYS:
            raise ValueError("it holds too many arrays")
        yield from _array(file, start, name if count == 1 else f"{name}#{count}")


def _array(file: IO[bytes], start: bytes, name: str) -> Iterator[Part]:
    if start[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it does not begin as a NumPy file does")
    size = int.from_bytes(file.read(2 if start[len(_MAGIC)] == 1 else 4), "little")
    if size > MOST_HEADER:
        raise ValueError("its header is too long")
    header = ast.literal_eval(file.read(size).decode("utf-8").strip())
    order = " F" if header["fortran_order"] else ""
    dtype = header["descr"] if isinstance(header["descr"], str) else repr(header["descr"])
    shape = extents(header["shape"])
    if dtype[1:].startswith("O"):
        yield from contents(pickles.read(file), prefix=name)
        return
    item = _size_of(dtype)  # None for a record: its fields say how long it is
    array_pieces = pieces(file, item * math.prod(shape)) if item is not None else pieces(file)
    yield Part(name, array_pieces, f"{dtype}{order}", shape)


def _size_of(dtype: str) -> int | None:
    match = re.fullmatch(r"[<>|=]?([?a-zA-Z])(\d*)(?:\[.*\])?", dtype)
    if match is None:
        return None
    if match[1] in "Mm":
        return 8
    return int(match[2] or 1) * (4 if match[1] == "U" else 1)


def written(dtype: str, shape: Sequence[int], data: bytes) -> bytes:
    """Return a file with an array, given as bytes in C order; as raw bytes if NumPy lacks its dtype.

    Version 1.0 of the format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """
    bits = re.search("[0-9]+", dtype)  # the first: float8_e4m3fn has 8
    size = max(1, int(bits[0] if bits else 8) // 8)
    code = f"<{_CODES[dtype]}{size}" if dtype in _CODES else f"|V{size}"
    head = {"descr": code, "fortran_order": False, "shape": tuple(shape)}
    text = repr(head).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return _MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text + data
