"""A bucket as a storage: with fsspec, and the package that fsspec has for the bucket's service."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from detaudit import redact
from detaudit.errors import StorageError, UsageError
from detaudit.remote.storage import failures, names

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
        raise failures.of("use", shown, error) from error
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
        names.check(name)
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
                if not failures.is_taken(error):
                    raise
                return again and self._files.cat_file(path) == data  # the answer to the first request was lost
            return True

        return self._ask("store files in", create)

    def names(self) -> list[str]:
        """See Storage.names. If a bucket does not exist, only S3 says so here."""

        def listed(_: bool) -> list[dict[str, Any]]:
            self._files.invalidate_cache()
            try:
                found: list[dict[str, Any]] = self._files.ls(self._root, detail=True)
            except FileNotFoundError as error:
                if failures.is_no_bucket(error):
                    raise
                return []
            return found

        found = [one["name"].rpartition("/") for one in self._ask("list", listed) if one["type"] == "file"]
        return sorted(name for folder, _, name in found if folder == self._root and names.is_listed(name))

    def fetch(self, name: str, into: Path) -> None:
        """See Storage.fetch."""
        names.check(name)
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
                if pause is None or failures.is_final(error):
                    raise failures.of(doing, self.url, error) from error
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
