"""A folder as a storage, which machines may share by NFS.

A file is written under a temporary name and then linked to its own: a link appears at once and whole, and never takes
the place of another, which a rename does. A writer that is killed leaves a temporary file, which is never listed.
"""

import errno
import os
import secrets
import shutil
from pathlib import Path

from detaudit import private
from detaudit.errors import StorageError
from detaudit.remote.storage import names

_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What file systems without hard links say, such as FAT. Without them nothing is both whole and the first:
a rename replaces what is there, and a file that is created under its name is there before it is whole."""


class Folder:
    """See detaudit.remote.storage.Storage."""

    def __init__(self, path: Path, url: str) -> None:
        self.url, self._path = url, path

    def put_new(self, name: str, file: Path) -> bool:
        """See Storage.put_new. What is stored survives a crash of the machine."""
        names.check(name)
        temporary = self._path / f".{name}.{secrets.token_hex(8)}"
        try:
            private.make_folder(self._path)
            try:
                _copy(file, temporary)
                won = self._link(temporary, name)
            finally:
                temporary.unlink(missing_ok=True)
            _sync(self._path)
        except OSError as error:
            raise StorageError.of(f"write {self.url}/{name}", error) from error
        return won

    def _link(self, temporary: Path, name: str) -> bool:
        """Return whether the file got the name. Raises StorageError if the file system has no links."""
        try:
            os.link(temporary, self._path / name)
        except FileExistsError:
            # NFS sends a request again if its answer was lost, and then finds the link that it made itself. Opening
            # the file makes it ask the server for the number of links.
            with temporary.open("rb") as own:
                return os.fstat(own.fileno()).st_nlink > 1
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            hint = "Choose a folder on a local file system or NFS, or a bucket, such as s3://bucket/runs."
            raise StorageError(f"cannot write {self.url}/{name}: its file system has no hard links", hint) from error
        return True

    def names(self) -> list[str]:
        """See Storage.names."""
        try:
            with os.scandir(self._path) as found:
                return sorted(one.name for one in found if names.is_listed(one.name) and one.is_file())
        except FileNotFoundError:
            return []
        except OSError as error:
            hint = "Check that it is a folder, and that you may read it."
            raise StorageError(f"cannot list {self.url}: {error.strerror or error}", hint) from error

    def fetch(self, name: str, into: Path) -> None:
        """See Storage.fetch."""
        names.check(name)
        try:
            shutil.copyfile(self._path / name, into)
        except OSError as error:
            into.unlink(missing_ok=True)
            hint = "Check that it is still there, that you may read it, and that there is space for a copy."
            raise StorageError(f"cannot copy {self.url}/{name}: {error.strerror or error}", hint) from error


def _copy(file: Path, to: Path) -> None:
    """Write a file to the disk, not only to the cache of this machine."""
    with file.open("rb") as source, open(to, "xb", opener=private.opener) as target:
        shutil.copyfileobj(source, target, 1 << 20)
        target.flush()
        os.fsync(target.fileno())


def _sync(folder: Path) -> None:
    """Write the names in a folder to the disk, if its file system can."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, *_NO_LINKS):
            raise
    finally:
        os.close(opened)
