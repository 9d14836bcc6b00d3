"""Read files of torch.save: a zip of raw storages, and ``data.pkl``, compared by its bytes and never loaded."""

import pickletools
import zipfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detaudit.auditor.evidence.formats import BROKEN, Part, UnusableError, unzipped, zip_part

MOST_STRUCTURE = 64 * 2**20
"""Bytes of ``data.pkl`` up to which the names and types of storages are looked up in it."""

LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How torch's format of before 1.6 begins: pickled 0x1950a86a20f9469cfc6c, torch.serialization.MAGIC_NUMBER."""

# torch (>= 2.1) derives it from the archive's records to distinguish files; it adds nothing to them.
_IDENTITY = ".data/serialization_id"

_BIG = b"big"

_MOST_NAME = 1000

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


def parts(path: Path) -> Iterator[Part] | None:
    """Return the parts as Reader.parts does, None if torch did not write the file."""
    check_format(path)
    with path.open("rb") as file:
        start = file.read(2)
    return _of_zip(path) if start == b"PK" and root_of(path) is not None else None


def check_format(path: Path) -> None:
    """Raise UnusableError for a file in a format that holds memory addresses."""
    with path.open("rb") as file:
        if file.read(len(LEGACY)) == LEGACY:
            raise UnusableError(
                "is in torch's format of before 1.6, which holds memory addresses: equal weights differ in their "
                "bytes. Save it without _use_new_zipfile_serialization=False"
            )


def dtype_of(storage: str) -> str | None:
    """Return the dtype of a class of storages, without its byte order; None for an unknown one."""
    return _DTYPES.get(storage)


def root_of(path: Path) -> str | None:
    """Return the folder inside the archive, which is named like the file when it was saved."""
    with unzipped(path) as archive:
        found = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    return min(found, key=len).removesuffix("data.pkl") if found else None


def is_big(archive: zipfile.ZipFile, root: str) -> bool:
    """Return whether the storages are in the byte order of big-endian machines."""
    if f"{root}byteorder" not in archive.namelist():
        return False
    with archive.open(f"{root}byteorder") as file:
        return file.read(len(_BIG) + 1) == _BIG


def _of_zip(path: Path) -> Iterator[Part]:
    root = root_of(path) or ""
    with unzipped(path) as archive:
        storages = _look_up(archive, archive.getinfo(f"{root}data.pkl"))
        big = is_big(archive, root)
        for member in sorted(archive.infolist(), key=lambda member: member.filename):
            name = member.filename.removeprefix(root)
            if name.startswith("data/"):
                storage = storages.get(name.removeprefix("data/"), _UNKNOWN)
                dtype = f"{'<>'[big]}{_DTYPES[storage.kind]}" if storage.kind in _DTYPES else storage.kind
                yield zip_part(archive, member, f"{storage.label} ({name})" if storage.label else name, dtype)
            elif name != _IDENTITY:
                yield zip_part(archive, member, name)


@dataclass(frozen=True)
class _Global:
    name: str


@dataclass(frozen=True)
class _Storage:
    kind: str
    label: str


_UNKNOWN = _Storage("unknown", "")
_Atom = str | int | _Global | None


def _look_up(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> dict[str, _Storage]:
    if member.file_size > MOST_STRUCTURE:
        return {}
    try:
        return storages_in(archive.read(member))
    except BROKEN:
        return {}


def storages_in(pickle: bytes) -> dict[str, _Storage]:
    """Return the type of each storage and the last text before it, which in a state_dict is the tensor's name.

    Only the opcodes are read: nothing that the pickle names is imported or called. torch writes a storage as the
    tuple ``("storage", type, key, location, size)``, a persistent ID of the pickle.
    """
    atoms: deque[_Atom] = deque(maxlen=12)
    memo: dict[int, _Atom] = {}
    found: dict[str, _Storage] = {}
    opcodes: Iterator[tuple[Any, Any, Any]] = pickletools.genops(pickle)
    for opcode, argument, _ in opcodes:
        match opcode.name:
            case "BINPERSID":
                _take(atoms, found)
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = atoms[-1]
            case "MEMOIZE":
                memo[len(memo)] = atoms[-1]
            case "BINGET" | "LONG_BINGET":
                atoms.append(memo.get(argument))
            case "GLOBAL":
                atoms.append(_Global(argument))
            case "STACK_GLOBAL":
                name, module = atoms.pop(), atoms.pop()
                known = isinstance(module, str) and isinstance(name, str) and len(module) + len(name) < _MOST_NAME
                atoms.append(_Global(f"{module} {name}") if known else None)
            case "MARK":
                pass
            case _:  # a text or a number, or None for a container such as a tuple
                atoms.append(argument if isinstance(argument, str | int) else None)
    return found


def _take(atoms: deque[_Atom], found: dict[str, _Storage]) -> None:
    *before, word, kind, key, _, _, _ = atoms
    if word == "storage" and isinstance(kind, _Global) and isinstance(key, str):
        label = next((atom for atom in reversed(before) if isinstance(atom, str)), "")
        found.setdefault(key, _Storage(kind.name, label))
