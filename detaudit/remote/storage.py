"""Archives in a folder or a bucket, each name once."""

import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from detaudit import private, redact
from detaudit.errors import StorageError, StorageUnreachableError, UsageError

# The names under which archives are stored.


def is_listed(name: str) -> bool:
    """Return whether this can be the name of an archive: one that starts with a dot is of a file that is not whole."""
    return name != "" and "/" not in name and not name.startswith(".")


def check(name: str) -> None:
    """Raise ValueError if this cannot be the name of an archive."""
    if not is_listed(name):
        raise ValueError(f"not a name to store under: {name!r}")


# A folder as a storage, which machines may share by NFS.
#
# A file is written under a temporary name and then linked to its own: a link appears at once and whole, and never takes
# the place of another, which a rename does. A writer that is killed leaves a temporary file, which is never listed.


_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What file systems without hard links say, such as FAT. Without them nothing is both whole and the first:
a rename replaces what is there, and a file that is created under its name is there before it is whole."""


class Folder:
    """See detaudit.remote.storage.Storage."""

    def __init__(self, path: Path, url: str) -> None:
        self.url, self._path = url, path

    def put_new(self, name: str, file: Path) -> bool:
        """See Storage.put_new. What is stored survives a crash of the machine."""
        check(name)
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
            with os.scandir(self._path) as entries:
                return sorted(one.name for one in entries if is_listed(one.name) and one.is_file())
        except FileNotFoundError:
            return []
        except OSError as error:
            hint = "Check that it is a folder, and that you may read it."
            raise StorageError(f"cannot list {self.url}: {error.strerror or error}", hint) from error

    def fetch(self, name: str, into: Path) -> None:
        """See Storage.fetch."""
        check(name)
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


# What the error of a bucket's library means. Each library has its own; none of them needs to be imported here.


_MOST_SHOWN = 300
"""Characters of an error."""

_LATER = (408, 409, 429)
"""HTTP statuses of requests that may succeed when they are sent again; 409: another was writing at that moment."""

_OF_NETWORK = {"ConnectionError", "HTTPClientError"}
"""Classes of botocore for which a request may be sent again. Neither is an OSError."""

_CREDENTIALS = (
    "Check that the credentials (for S3: AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) are set and "
    "allow to list, read and write there."
)
_NETWORK = "Check the network, the address of the service and the credentials, then run the command again."


def is_taken(error: Exception) -> bool:
    """Return whether a file was not stored because its name is taken. Not every server names the condition."""
    return isinstance(error, FileExistsError) or _status(error) == 412


def is_no_bucket(error: Exception) -> bool:
    """Return whether a bucket of S3 does not exist, and not only a file in it."""
    return any(_code(one) == "NoSuchBucket" for one in _causes(error))


def is_final(error: Exception) -> bool:
    """Return whether the same request would fail again."""
    status = _status(error)
    if status is not None:
        return 400 <= status < 500 and status not in _LATER
    if isinstance(error, FileNotFoundError | PermissionError | NotImplementedError | TypeError | ValueError):
        return True
    classes = _classes(error)
    return "BotoCoreError" in classes and not classes & _OF_NETWORK


def of(doing: str, url: str, error: Exception) -> StorageError:
    """Return the error of ``doing`` something, such as "store a file in". ``url`` has no secrets."""
    reason = _reason(error)
    if _is_denied(error):
        return StorageError(f"not allowed to {doing} {url}: {reason}", _CREDENTIALS)
    if isinstance(error, FileNotFoundError):
        return StorageError(f"cannot {doing} {url}: not found: {reason}", "Check that the bucket, and the file, exist.")
    if is_final(error):
        return StorageError(f"cannot {doing} {url}: {reason}", "Correct the URL, or the settings of the service.")
    return StorageUnreachableError(f"cannot {doing} {url} now: {reason}", _NETWORK)


def _is_denied(error: Exception) -> bool:
    if isinstance(error, PermissionError) or _status(error) in (401, 403):
        return True
    return any(word in name for name in _classes(error) for word in ("Credential", "Token", "Profile"))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was made from."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _classes(error: Exception) -> set[str]:
    return {one.__name__ for one in type(error).__mro__}


def _response(error: BaseException) -> dict[str, dict[str, object]]:
    """Return what a server of S3 answered, ``{}`` if the error is not of its answer."""
    response = getattr(error, "response", None)
    return response if isinstance(response, dict) else {}


def _code(error: BaseException) -> object:
    return _response(error).get("Error", {}).get("Code")


def _status(error: Exception) -> int | None:
    """Return the HTTP status of what a server answered, None if the error is not of its answer."""
    for one in _causes(error):
        http_status = _response(one).get("ResponseMetadata", {}).get("HTTPStatusCode")
        for status in (http_status, getattr(one, "status_code", None), getattr(one, "code", None)):
            if isinstance(status, int):
                return status
    return None


def _reason(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return redact.text(" ".join(text.split()))[:_MOST_SHOWN]


# A bucket as a storage: with fsspec, and the package that fsspec has for the bucket's service.


T = TypeVar("T")

ANSWER_S = 30.0
"""Seconds that a server has to answer when a file is stored, more by SLOWEST for a large one. s3fs has no limit of its
own for one that accepts a connection and reads nothing: aiohttp waits for its ``100 Continue`` for ever."""

SLOWEST = 1 << 17
"""Bytes per second of a connection that is used."""


class _Service(NamedTuple):
    package: str
    """What pip installs."""
    options: Mapping[str, Any] = {}
    """Of the package's file system."""
    pauses: tuple[float, ...] = ()
    """Seconds before a request is sent again, by us; a package without any sends them again by itself."""


_S3 = _Service(
    "detaudit[s3]",
    {"config_kwargs": {"connect_timeout": 5, "read_timeout": 20, "retries": {"total_max_attempts": 1}}},
    (1, 3),
)
"""By default, botocore and s3fs multiply their retries."""

_GOOGLE, _AZURE = _Service("gcsfs"), _Service("adlfs")

SERVICES = {
    "abfs": _AZURE,
    "az": _AZURE,
    "gcs": _GOOGLE,
    "gs": _GOOGLE,
    "memory": _Service("fsspec"),
    "s3": _S3,
    "s3a": _S3,
}
"""By the scheme of a URL. Only these store a file on the condition that its name is free, which one request does: s3fs
from 2024.12 on, gcsfs and adlfs. What fsspec has for others (sftp, smb, hdfs, webdav) looks first and then writes, or
replaces what is there, and a reader may see the half of it."""

_MARK, _MARKED = ".detaudit", b"Shows that what is stored here is not replaced.\n"


def connect(url: str) -> "Objects":
    """Return the bucket with this URL. Raises UsageError if it cannot be one, or a package is missing."""
    shown = redact.text(url)
    scheme = url.partition("://")[0]
    if scheme not in SERVICES:
        known = ", ".join(f"{one}://" for one in ("file", *SERVICES))
        raise UsageError(
            f"runs cannot be stored at {scheme}:// URLs",
            f"Use a path, or one of {known}, where a file is never replaced by another.",
        )
    service = SERVICES[scheme]
    try:
        import fsspec  # only for a URL that asks for it

        files, root = fsspec.url_to_fs(url, skip_instance_cache=True, use_listings_cache=False, **service.options)
    except ImportError as error:
        raise UsageError(
            f"{shown} needs a package that is not installed: {error}",
            f"Run `pip install '{service.package}'` where detaudit is installed.",
        ) from error
    except Exception as error:
        raise of("use", shown, error) from error
    if not root.strip("/"):
        raise UsageError(f"{shown} does not name a bucket", f"Write {scheme}://BUCKET, or {scheme}://BUCKET/FOLDER.")
    files.retries = 1  # s3fs multiplies those of botocore by it
    return Objects(files, root, shown, service.pauses)


class Objects:
    """See detaudit.remote.storage.Storage."""

    def __init__(self, files: Any, root: str, url: str, pauses: tuple[float, ...]) -> None:
        self.url = url
        self._files, self._root, self._pauses = files, root.rstrip("/"), pauses
        self._never_replaces = False

    def put_new(self, name: str, file: Path) -> bool:
        """See Storage.put_new. A writer that is killed leaves nothing, or an upload of parts that is never listed."""
        check(name)
        data = file.read_bytes()
        if not self._never_replaces:
            self._check_that_it_never_replaces()
        return self._create(name, data)

    def _check_that_it_never_replaces(self) -> None:
        """Raise StorageError if the service replaces files against its orders: some servers of S3 ignore conditions."""
        if self._create(_MARK, _MARKED) and self._create(_MARK, _MARKED):
            raise StorageError(
                f"cannot store files in {self.url}, which replaces files although the request forbids it",
                "Use a server that supports the header If-None-Match, or a folder.",
            )
        self._never_replaces = True

    def _create(self, name: str, data: bytes) -> bool:
        """Return whether the data got the name. ``open(..., "wb")`` would store half of it after an error."""
        path = f"{self._root}/{name}"

        def create(again: bool) -> bool:
            try:
                limit = ANSWER_S + len(data) / SLOWEST
                _in_time(lambda: self._files.pipe_file(path, data, mode="create"), limit)
            except Exception as error:
                if not is_taken(error):
                    raise
                return again and self._files.cat_file(path) == data  # the answer to the first request was lost
            return True

        return self._ask("store files in", create)

    def names(self) -> list[str]:
        """See Storage.names. If a bucket does not exist, only S3 says so here."""

        def listed(_: bool) -> list[dict[str, Any]]:
            self._files.invalidate_cache()
            try:
                entries: list[dict[str, Any]] = self._files.ls(self._root, detail=True)
            except FileNotFoundError as error:
                if is_no_bucket(error):
                    raise
                return []
            return entries

        split_paths = [one["name"].rpartition("/") for one in self._ask("list", listed) if one["type"] == "file"]
        return sorted(name for folder, _, name in split_paths if folder == self._root and is_listed(name))

    def fetch(self, name: str, into: Path) -> None:
        """See Storage.fetch."""
        check(name)
        try:
            self._ask(f"read {name} from", lambda _: self._files.get_file(f"{self._root}/{name}", str(into)))
        except StorageError:
            into.unlink(missing_ok=True)
            raise

    def _ask(self, doing: str, request: Callable[[bool], T]) -> T:
        """Return what a request returns. It is sent again, and then given True, if it may succeed later."""
        for sent, pause in enumerate((*self._pauses, None)):
            try:
                return request(sent > 0)
            except Exception as error:
                if pause is None or is_final(error):
                    raise of(doing, self.url, error) from error
                time.sleep(pause)
        raise AssertionError("the last request returns or raises")


def _in_time(request: Callable[[], object], limit: float) -> None:
    """Wait for a request, in a thread that is left alone after ``limit`` seconds: then TimeoutError is raised."""
    raised: list[Exception | None] = []

    def call() -> None:
        try:
            request()
        except Exception as error:  # noqa: BLE001 - raised below
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit)
    if not raised:
        raise TimeoutError("no answer in time")
    if raised[0] is not None:
        raise raised[0]


# Where archives of runs are kept: a folder that machines share, or a bucket.


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
        return Folder(Path(url), url)
    if scheme != "file":
        return connect(url)
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(f"{url} names a host", "Write a path with three slashes, such as file:///shared/runs.")
    return Folder(Path(unquote(parts.path)), url)
