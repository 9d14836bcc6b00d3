"""Read safetensors: a JSON header, then the tensors one after the other.

The layout is at https://huggingface.co/docs/safetensors. Its metadata are texts.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from detaudit.runs.formats import Part, extents, pieces, text

_METADATA = "__metadata__"
MOST_HEADER = 100 * 2**20
"""Bytes; the limit that the format itself sets."""

_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<bf16",
    "C64": "<c8",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > MOST_HEADER:
            raise ValueError("its header is too long")
        header = json.loads(file.read(size), object_pairs_hook=_once)
        metadata = header.pop(_METADATA, {})
        start, file_size = 8 + size, path.stat().st_size
        _check(header, file_size - start)
        for name, tensor in sorted(header.items()):
            begin, end = tensor["data_offsets"]
            file.seek(start + begin)
            dtype = str(tensor["dtype"])
            yield Part(name, pieces(file, end - begin), _DTYPES.get(dtype, dtype), extents(tensor["shape"]))
        for key, value in sorted(metadata.items()):
            yield text(f"{_METADATA}.{key}", str(value))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("its header names a tensor twice")
    return members


def _check(header: dict[str, Any], size: int) -> None:
    # Without holes and overlaps no byte escapes, and a small file cannot ask for endless reading.
    at = 0
    for begin, end in sorted(tuple(tensor["data_offsets"]) for tensor in header.values()):
        if begin != at or end < begin:
            raise ValueError("its tensors do not lie one after another")
        at = end
    if at != size:
        raise ValueError(f"its tensors have {at} bytes, and the file has {size} for them")
