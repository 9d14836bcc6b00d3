"""Read MAT-files of MATLAB's versions 5 to 7: the text in their header, which has a date, and their variables.

The layout is in "MAT-File Format", https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf, section 1: 116
bytes of text, 12 bytes of version and byte order, then elements of 8 bytes of type and size, and their data.
"""

from collections.abc import Iterator
from pathlib import Path

from detaudit.runs.formats import Part, pieces, unique
from detaudit.runs.formats import values as single

_TEXT, _HEADER, _TAG = 116, 128, 8
_MOST_ELEMENTS = 100_000


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts. An element is a variable, compressed or not, and its name is in it."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(_HEADER)
        order = "little" if header[-2:] == b"IM" else "big"
        yield single.text("header", header[:_TEXT].decode("latin-1").rstrip(" \0"))
        yield single.opaque("version", header[_TEXT:])
        for count in range(1, _MOST_ELEMENTS + 1):
            tag = file.read(_TAG)
            if not tag:
                return
            length = int.from_bytes(tag[4:], order)  # type: ignore[arg-type]
            if len(tag) < _TAG or length > size - file.tell():
                raise EOFError("it ends within a variable")
            yield Part(f"variable {count}", pieces(file, length))
    raise ValueError("it holds too many variables")
