"""Where archives of runs are kept: a folder that machines share, or a bucket."""

from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from detaudit.errors import UsageError
from detaudit.remote.storage import folder, objects


class Storage(Protocol):
    """Where archives of runs are kept: a folder, or a bucket.

    A name has no slash in it and no dot at its beginning. Every method raises StorageError, and its subclass
    StorageUnreachableError if the same call may succeed later.
    """

    url: str
    """As the user gave it, without user and password."""

    def put_new(self, name: str, file: Path) -> bool:
        """Store the contents of a file under a name, whole or not at all. If the name is taken, return False.

        Of all who store under one name at once, one gets True, and what is stored is not replaced. After an error, the
        contents may be stored or not; the next call for the name says so.
        """

    def names(self) -> list[str]:
        """Return the names of what is stored whole, sorted: an empty list if the folder does not exist yet."""

    def fetch(self, name: str, into: Path) -> None:
        """Copy what is stored under a name to a local file. After an error, no such file is left."""


def open_storage(url: str) -> Storage:
    """Return the storage at a path, or at a URL such as ``file:///runs`` or ``s3://bucket/runs``. It may not exist yet.

    Raises UsageError for a URL that cannot be one, or whose package is not installed.
    """
    scheme, separator, _ = url.partition("://")
    if not separator:
        return folder.Folder(Path(url), url)
    if scheme != "file":
        return objects.connect(url)
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(f"{url} names a host", "Write a path with three slashes, such as file:///shared/runs.")
    return folder.Folder(Path(unquote(parts.path)), url)
