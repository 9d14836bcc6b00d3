"""A bucket as a storage: memory:// of fsspec, and file systems that fail in each way."""

import errno
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from detaudit.errors import StorageError, StorageUnreachableError, UsageError
from detaudit.remote import storage
from detaudit.remote.storage import Objects, open_storage

SECRET = "planted-in-the-url"


class BotoCoreError(Exception):
    pass


class NoCredentialsError(BotoCoreError):
    pass


class HTTPClientError(BotoCoreError):
    pass


class ClientError(Exception):
    """As botocore's."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


def translated(status: int, code: str, kind: Callable[[str], Exception]) -> Exception:
    """Return an error as s3fs makes it of botocore's."""
    made = kind(code)
    made.__cause__ = ClientError(status, code)
    return made


def other(code: str) -> Exception:
    return OSError(errno.EIO, code)


class Files:
    """A file system of fsspec that keeps what it is given, and fails as it is asked to, before or after."""

    def __init__(self, *failures: Exception, after: Exception | None = None, replaces: bool = False) -> None:
        self.kept: dict[str, bytes] = {}
        self.failures, self.after, self.replaces = list(failures), after, replaces
        self.requests = 0

    def pipe_file(self, path: str, data: bytes, mode: str) -> None:
        assert mode == "create"
        self._fail()
        if path in self.kept and not self.replaces:
            raise FileExistsError(path)
        self.kept[path] = data
        if self.after is not None and not path.endswith(storage._MARK):
            after, self.after = self.after, None
            raise after

    def cat_file(self, path: str) -> bytes:
        return self.kept[path]

    def invalidate_cache(self) -> None:
        pass

    def ls(self, path: str, detail: bool) -> list[dict[str, Any]]:
        self._fail()
        return [{"name": name, "type": "file"} for name in self.kept]

    def get_file(self, path: str, into: str) -> None:
        Path(into).write_bytes(b"hal")
        self._fail()

    def _fail(self) -> None:
        self.requests += 1
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(storage, "time", SimpleNamespace(sleep=found.append))
    return found


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive"
    path.write_bytes(b"an archive")
    return path


def a_bucket(files: Files, pauses: tuple[float, ...] = (1, 3)) -> Objects:
    return Objects(files, "bucket/runs", "s3://bucket/runs", pauses)


@pytest.fixture
def memory() -> Iterator[str]:
    fsspec = pytest.importorskip("fsspec")
    yield "memory://bucket/runs"
    fsspec.filesystem("memory").store.clear()


def test_what_is_stored_is_not_replaced(memory: str, archive: Path, tmp_path: Path) -> None:
    storage = open_storage(memory)
    assert storage.names() == []
    assert storage.put_new("run2", archive)
    assert open_storage(f"{memory}/").put_new("run10", archive)
    archive.write_bytes(b"another")
    assert not open_storage(memory).put_new("run2", archive)
    assert open_storage(f"{memory}/deeper").put_new("run", archive)
    assert storage.names() == ["run10", "run2"]
    storage.fetch("run2", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"an archive"


def test_a_file_that_is_gone_is_an_error_and_leaves_no_copy(memory: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read run from memory://bucket/runs: not found"):
        open_storage(memory).fetch("run", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    "url", ["sftp://host/runs", "http://host/runs", "simplecache::s3://bucket/runs", "s4://bucket"]
)
def test_what_may_replace_a_file_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="runs cannot be stored at") as caught:
        open_storage(url)
    assert "file://, abfs://" in caught.value.hint


def test_a_url_without_a_bucket_is_refused(memory: str) -> None:
    with pytest.raises(UsageError, match="memory:// does not name a bucket"):
        open_storage("memory://")


@pytest.mark.parametrize(("url", "missing", "install"), [
    ("s3://bucket", "fsspec", "detaudit[s3]"), ("s3://bucket", "s3fs", "detaudit[s3]"),
    ("gs://bucket", "gcsfs", "gcsfs"), ("memory://bucket", "fsspec", "fsspec"),
])  # fmt: skip
def test_a_missing_package_is_named(url: str, missing: str, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing != "fsspec":
        pytest.importorskip("fsspec")
        monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, url.partition(":")[0], raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match="needs a package that is not installed") as caught:
        open_storage(url)
    assert caught.value.hint == f"Run `pip install '{install}'` where detaudit is installed."


def test_no_message_has_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError) as caught:
        open_storage(f"s3://key:{SECRET}@bucket/runs")
    assert caught.value.message.startswith("s3://***@bucket/runs needs")
    failing = Files(HTTPClientError(f'could not connect to "https://me:{SECRET}@host/bucket"'))
    with pytest.raises(StorageError) as raised:
        a_bucket(failing, ()).names()
    assert 'now: could not connect to "https://***@host/bucket"' in raised.value.message


def test_a_service_that_replaces_files_is_refused_before_it_does(archive: Path) -> None:
    files = Files(replaces=True)
    with pytest.raises(StorageError, match="replaces files"):
        a_bucket(files).put_new("run", archive)
    assert list(files.kept) == ["bucket/runs/.detaudit"]
    assert a_bucket(files).names() == []


def test_a_service_is_tried_once(archive: Path) -> None:
    files = Files()
    storage = a_bucket(files)
    assert [storage.put_new(name, archive) for name in ("run1", "run2", "run1")] == [True, True, False]
    assert files.requests == 2 + 3


@pytest.mark.parametrize("error", [
    HTTPClientError("timed out"), TimeoutError("timed out"), ConnectionResetError("reset"),
    translated(409, "ConditionalRequestConflict", other), translated(503, "SlowDown", other),
])  # fmt: skip
def test_a_request_that_may_succeed_later_is_sent_again(error: Exception, archive: Path, slept: list[float]) -> None:
    storage = a_bucket(Files(error, error))
    assert storage.put_new("run", archive)
    assert storage.names() == ["run"]
    assert slept == [1, 3]


def test_a_file_whose_answer_was_lost_is_stored(archive: Path) -> None:
    files = Files(after=HTTPClientError("timed out"))
    assert a_bucket(files).put_new("run", archive)
    archive.write_bytes(b"another")
    assert not a_bucket(files).put_new("run", archive)
    assert files.kept["bucket/runs/run"] == b"an archive"


def test_a_name_that_somebody_took_between_two_requests_is_taken(archive: Path) -> None:
    files = Files()
    storage = a_bucket(files)
    assert storage.put_new("run1", archive)
    files.kept["bucket/runs/run2"] = b"another"
    files.failures = [translated(409, "ConditionalRequestConflict", other)]
    assert not storage.put_new("run2", archive)


def test_a_server_that_does_not_name_the_condition_is_understood(archive: Path) -> None:
    storage = a_bucket(Files())
    assert storage.put_new("run1", archive)
    storage._files.failures = [translated(412, "PreconditionFailed", other)]
    assert not storage.put_new("run2", archive)


def test_a_server_that_stays_away_is_unreachable(archive: Path, slept: list[float], tmp_path: Path) -> None:
    down = [HTTPClientError("nobody answers") for _ in range(9)]
    storage = a_bucket(Files(*down))
    with pytest.raises(StorageUnreachableError, match="cannot store files in s3://bucket/runs now: nobody answers"):
        storage.put_new("run", archive)
    with pytest.raises(StorageUnreachableError, match="cannot list s3://bucket/runs now"):
        storage.names()
    with pytest.raises(StorageUnreachableError, match="cannot read run from s3://bucket/runs now"):
        storage.fetch("run", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert slept == [1, 3] * 3


@pytest.mark.parametrize(("error", "begin", "hint"), [
    (translated(403, "AccessDenied", PermissionError), "not allowed to store", "credentials"),
    (NoCredentialsError("Unable to locate credentials"), "not allowed to store", "credentials"),
    (translated(404, "NoSuchBucket", FileNotFoundError), "cannot store files in s3://bucket/runs: not found", "bucket"),
    (translated(400, "InvalidBucketName", other), "cannot store files in s3://bucket/runs: Inv", "URL"),
    (BotoCoreError("Parameter validation failed"), "cannot store files in s3://bucket/runs: Param", "URL"),
])  # fmt: skip
def test_a_request_that_would_fail_again_is_sent_once(error: Exception, begin: str, hint: str, archive: Path) -> None:
    files = Files(error)
    with pytest.raises(StorageError) as caught:
        a_bucket(files).put_new("run", archive)
    assert not isinstance(caught.value, StorageUnreachableError)
    assert caught.value.message.startswith(begin)
    assert hint in caught.value.hint
    assert (files.requests, files.kept) == (1, {})


def test_a_folder_that_does_not_exist_is_empty_and_a_bucket_is_an_error() -> None:
    assert a_bucket(Files(FileNotFoundError("bucket/runs"))).names() == []
    with pytest.raises(StorageError, match="cannot list s3://bucket/runs: not found: NoSuchBucket"):
        a_bucket(Files(translated(404, "NoSuchBucket", FileNotFoundError))).names()


def test_names_are_those_directly_in_the_folder() -> None:
    files = Files()
    for name in ("runs", "runs/", "runs/b", "runs/.b.1", "runs/a", "runs/deeper/c", "runs2/d"):
        files.kept[f"bucket/{name}"] = b""
    assert a_bucket(files).names() == ["a", "b"]
