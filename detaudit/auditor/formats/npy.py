"""npy: one NumPy array, its header a Python literal. An array of objects is a pickle, compared by its bytes.

The layout is at https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from detaudit.auditor.formats import Part, pieces

MOST_HEADER = 2**20
_MAGIC = b"\x93NUMPY"


def parts(path: Path) -> Iterator[Part]:
    """See Reader.parts."""
    with path.open("rb") as file:
        yield array(file, "")


def array(file: IO[bytes], name: str) -> Part:
    """Return the array that begins here and fills the rest of ``file``."""
    start = file.read(len(_MAGIC) + 2)
    if start[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it does not begin as a NumPy file does")
    size = int.from_bytes(file.read(2 if start[len(_MAGIC)] == 1 else 4), "little")
    if size > MOST_HEADER:
        raise ValueError("its header is too long")
    header = ast.literal_eval(file.read(size).decode("utf-8").strip())
    order = " F" if header["fortran_order"] else ""
    dtype = header["descr"] if isinstance(header["descr"], str) else repr(header["descr"])
    return Part(name, pieces(file), f"{dtype}{order}", tuple(header["shape"]))
