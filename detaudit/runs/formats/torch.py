"""What torch.save writes: a zip of raw storages and a pickle; before 1.6, pickles and storages one after another."""

import zipfile

from detaudit.runs.formats.standins import Global

MOST_STRUCTURE = 256 * 2**20
"""Bytes of ``data.pkl``, which is read as a whole."""

MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How the pickled 0x1950a86a20f9469cfc6c ends, in every protocol: torch.serialization.MAGIC_NUMBER."""

LEGACY = b"\x80\x02" + MAGIC
"""How torch's format of before 1.6 begins."""

_BIG = b"big"

_DTYPES = {
    "torch DoubleStorage": "f8",
    "torch FloatStorage": "f4",
    "torch HalfStorage": "f2",
    "torch BFloat16Storage": "bf16",
    "torch ComplexDoubleStorage": "c16",
    "torch ComplexFloatStorage": "c8",
    "torch LongStorage": "i8",
    "torch IntStorage": "i4",
    "torch ShortStorage": "i2",
    "torch CharStorage": "i1",
    "torch ByteStorage": "u1",
    "torch BoolStorage": "b1",
}

# Types without a class of storages, whose tensors name them: torch._utils._rebuild_tensor_v3.
_NAMED = {"torch uint16": "u2", "torch uint32": "u4", "torch uint64": "u8"}
_NAMED |= {f"torch float8_{kind}": f"f8_{kind}" for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")}

SIZES = {"f8": 8, "f4": 4, "f2": 2, "bf16": 2, "c16": 16, "c8": 8, "i8": 8, "i4": 4, "i2": 2, "i1": 1, "u1": 1, "b1": 1}
SIZES |= {"u2": 2, "u4": 4, "u8": 8} | {kind: 1 for kind in _NAMED.values() if kind.startswith("f8_")}
"""Bytes of an element."""


def dtype_of(storage: str) -> str | None:
    """Return the dtype of a class of storages, without its byte order; None for an unknown one."""
    return _DTYPES.get(storage)


def named_dtype(arguments: tuple[object, ...]) -> str | None:
    """Return the dtype that the arguments of ``_rebuild_tensor_v3`` name, None if they name none that is known."""
    return next((_NAMED[one.name] for one in arguments[4:] if isinstance(one, Global) and one.name in _NAMED), None)


def root_of(archive: zipfile.ZipFile) -> str | None:
    """Return the folder inside the archive, which is named like the file when it was saved."""
    pickle_names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    return min(pickle_names, key=len).removesuffix("data.pkl") if pickle_names else None


def is_big(archive: zipfile.ZipFile, root: str) -> bool:
    """Return whether the storages are in the byte order of big-endian machines."""
    if f"{root}byteorder" not in archive.namelist():
        return False
    with archive.open(f"{root}byteorder") as file:
        return file.read(len(_BIG) + 1) == _BIG
