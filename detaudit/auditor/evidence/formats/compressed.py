"""Open files that may be compressed, as by joblib's ``compress`` or ``gzip.open``."""

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, Any, cast

from detaudit.auditor.evidence.formats import PIECE, check_unpacked

_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x5d\x00\x00": lzma.open,
}
_ZLIB = 0x78


def opened(path: Path) -> IO[bytes]:
    """Open a file to be read, decompressed if it begins as a compressed one does.

    Reading raises ValueError once a file has unpacked to too much.
    """
    with path.open("rb") as file:
        start = file.read(5)
    for magic, opener in _OPENERS.items():
        if start.startswith(magic):
            return _unpacked(opener(path), path)
    if len(start) > 1 and start[0] == _ZLIB and int.from_bytes(start[:2], "big") % 31 == 0:  # RFC 1950, section 2.2
        return _unpacked(_Inflated(path), path)
    return path.open("rb")


def _unpacked(file: io.IOBase, path: Path) -> IO[bytes]:
    return io.BufferedReader(_Counted(cast(io.RawIOBase, file), path.stat().st_size))


class _Counted(io.RawIOBase):
    """What a file of ``size`` bytes unpacks to."""

    def __init__(self, file: io.RawIOBase, size: int) -> None:
        self._file, self._size, self._read = file, size, 0

    def tell(self) -> int:
        return self._read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        self._read += count
        check_unpacked(self._read, self._size)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Inflated(io.RawIOBase):
    """A file in zlib's format, which the standard library opens no file of."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._inflate.eof:
            data = self._inflate.unconsumed_tail or self._file.read(PIECE)
            found = self._inflate.decompress(data, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
            if not data and not self._inflate.eof:
                raise EOFError("its compressed data ends too early")
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()
