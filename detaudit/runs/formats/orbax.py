"""Read what orbax writes as OCDBT, a database of tensorstore: a manifest, and files whose names are random numbers.

The manifest stands for all of it; the other files are read through it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from detaudit.runs.formats import Part, Start, apart, text

MANIFEST = "manifest.ocdbt"
_NAME = re.compile(r"[0-9a-f]{32}")
"""Files of a database: https://google.github.io/tensorstore/kvstore/ocdbt/index.html#storage-format."""


def is_data(start: Start) -> bool:
    """Return whether a file is one of those that a manifest leads to, as its name and folder say: it has no mark."""
    folder = start.path.parent
    return bool(_NAME.fullmatch(start.path.name)) and folder.name == "d" and (folder.parent / MANIFEST).is_file()


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    if _NAME.fullmatch(path.name):
        return iter([text("", f"is read with {MANIFEST}")])
    return apart.by_library("ocdbt", path)
