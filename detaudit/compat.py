"""What Python 3.11 has and Python 3.10 lacks."""

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
    from hashlib import file_digest
    from typing import assert_never

    import tomllib
else:
    import hashlib
    from enum import Enum
    from typing import IO, NoReturn

    import tomli as tomllib

    class StrEnum(str, Enum):
        """An enumeration of texts: a member is formatted as its value."""

        __str__ = str.__str__

    def file_digest(file: IO[bytes], name: str) -> "hashlib._Hash":
        """Return the digest of the rest of a file."""
        digest = hashlib.new(name)
        while piece := file.read(2**18):
            digest.update(piece)
        return digest

    def assert_never(value: NoReturn) -> NoReturn:
        """State that this line cannot be reached."""
        raise AssertionError(f"unexpected {value!r}")


SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()
"""The option of Python that leaves the working folder out of ``sys.path``."""

__all__ = ("SAFE_PATH", "StrEnum", "assert_never", "file_digest", "tomllib")
