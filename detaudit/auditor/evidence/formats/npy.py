"""Read npy: one NumPy array with a Python literal as header. An array of objects is compared by its bytes.

The layout is at https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from detaudit.auditor.evidence.formats import Part, extents, pieces

MOST_HEADER = 2**20
_MAGIC = b"\x93NUMPY"
_KINDS = (("bool", "b"), ("uint", "u"), ("int", "i"), ("float", "f"), ("complex", "c"))


def parts(path: Path) -> Iterator[Part]:
    """See Reader.parts."""
    with path.open("rb") as file:
        yield array(file, "")


def array(file: IO[bytes], name: str) -> Part:
    """Return the array that starts here and fills the rest of ``file``."""
    start = file.read(len(_MAGIC) + 2)
    if start[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it does not begin as a NumPy file does")
    size = int.from_bytes(file.read(2 if start[len(_MAGIC)] == 1 else 4), "little")
    if size > MOST_HEADER:
        raise ValueError("its header is too long")
    header = ast.literal_eval(file.read(size).decode("utf-8").strip())
    order = " F" if header["fortran_order"] else ""
    dtype = header["descr"] if isinstance(header["descr"], str) else repr(header["descr"])
    return Part(name, pieces(file), f"{dtype}{order}", extents(header["shape"]))


def written(dtype: str, shape: Sequence[int], data: bytes) -> bytes:
    """Return a file with an array, given as bytes in C order; as raw bytes if NumPy lacks its dtype.

    Version 1.0 of the format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """
    size = int("".join(filter(str.isdigit, dtype)) or 8) // 8
    code = next((code for kind, code in _KINDS if dtype.startswith(kind)), "") if dtype[:6] != "float8" else ""
    head = {"descr": f"<{code}{size}" if code else f"|V{size}", "fortran_order": False, "shape": tuple(shape)}
    text = repr(head).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return _MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text + data
