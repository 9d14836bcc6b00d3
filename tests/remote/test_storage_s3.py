"""Archives on a real server of S3, which is stopped, started, and made to hang."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from detaudit.errors import StorageError, StorageUnreachableError
from detaudit.remote import storage as objects
from detaudit.remote.storage import open_storage
from tests.remote.s3_server import S3Server, serving

pytestmark = [pytest.mark.s3, pytest.mark.launches]

URL = "s3://bucket/runs"
LARGE = 101 << 20
"""s3fs uploads what has 100 MiB or more in parts."""

KILLED = """
import asyncio, sys
from pathlib import Path
import s3fs
from detaudit.remote.storage import open_storage
call = s3fs.S3FileSystem._call_s3

async def wait_at_the_end(self, method, *words, **options):
    if method == "complete_multipart_upload":
        print("uploaded", flush=True)
        await asyncio.sleep(600)
    return await call(self, method, *words, **options)

s3fs.S3FileSystem._call_s3 = wait_at_the_end
open_storage(sys.argv[1]).put_new("run", Path(sys.argv[2]))
"""


def files() -> Any:
    import s3fs

    return s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with serving(tmp_path_factory.mktemp("moto") / "server.log") as server:
        yield server


@pytest.fixture
def server(running: S3Server) -> Iterator[S3Server]:
    """A server with one empty bucket."""
    files().mkdir("bucket")
    yield running
    files().rm("bucket", recursive=True)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive"
    path.write_bytes(b"an archive")
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(LARGE))
    return path


def test_what_is_stored_is_not_replaced(server: S3Server, archive: Path, tmp_path: Path) -> None:
    storage = open_storage(URL)
    assert storage.names() == []
    assert storage.put_new("run", archive)
    archive.write_bytes(b"another")
    assert not storage.put_new("run", archive)
    storage.fetch("run", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"an archive"
    assert storage.names() == ["run"]
    assert open_storage("s3://bucket").names() == []
    with pytest.raises(StorageError, match="cannot read gone from s3://bucket/runs: not found"):
        storage.fetch("gone", tmp_path / "gone")


def test_a_listing_has_what_another_client_just_stored(server: S3Server, archive: Path) -> None:
    reader, writer = open_storage(URL), open_storage(URL)
    for number in range(9):
        assert writer.put_new(f"run{number}", archive)
        assert reader.names() == [f"run{one}" for one in range(number + 1)]
    files().rm(f"{URL}/run0")
    assert "run0" not in reader.names()


def test_one_of_several_writers_gets_the_name(server: S3Server, tmp_path: Path) -> None:
    """Files that are small, because moto looks for the name of an upload in parts and joins them a second later."""
    writers = 12
    archives = [tmp_path / str(one) for one in range(writers)]
    for one, path in enumerate(archives):
        path.write_bytes(bytes([one]) * (1 << 20))
    with ThreadPoolExecutor(writers) as threads:
        won = list(threads.map(lambda path: open_storage(URL).put_new("run", path), archives))
    assert won.count(True) == 1
    open_storage(URL).fetch("run", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == archives[won.index(True)].read_bytes()


def test_a_large_file_is_uploaded_in_parts(server: S3Server, large: Path, tmp_path: Path) -> None:
    assert open_storage(URL).put_new("run", large)
    assert not open_storage(URL).put_new("run", large)
    assert files().info(f"{URL}/run")["ETag"].strip('"').endswith("-3")
    open_storage(URL).fetch("run", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()


def test_a_writer_that_is_killed_leaves_nothing_that_is_listed(server: S3Server, large: Path) -> None:
    command = [sys.executable, "-c", KILLED, URL, str(large)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "uploaded\n"
        writer.send_signal(signal.SIGKILL)
    assert open_storage(URL).names() == []
    assert open_storage(URL).put_new("run", large)
    assert open_storage(URL).names() == ["run"]


def test_a_server_that_stops_is_an_error_and_one_that_starts_again_is_used(server: S3Server, archive: Path) -> None:
    storage = open_storage(URL)
    assert storage.put_new("run1", archive)
    server.stop()
    try:
        began = time.monotonic()
        with pytest.raises(
            StorageUnreachableError, match=r"cannot store files in s3://bucket/runs now: Could not conn"
        ):
            storage.put_new("run2", archive)
        with pytest.raises(StorageUnreachableError, match="cannot list s3://bucket/runs now"):
            storage.names()
        assert time.monotonic() - began < 30
    finally:
        server.start()
        files().mkdir("bucket")
    assert storage.put_new("run2", archive)
    assert storage.names() == ["run2"]


def test_a_server_that_hangs_is_an_error_in_bounded_time(
    server: S3Server, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**objects.SERVICES["s3"].options["config_kwargs"], "read_timeout": 1}
    quick = objects.SERVICES["s3"]._replace(options={"config_kwargs": config}, pauses=(0.1,))
    monkeypatch.setitem(objects.SERVICES, "s3", quick)
    monkeypatch.setattr(objects, "ANSWER_S", 2)
    storage = open_storage(URL)
    server.hang()
    began = time.monotonic()
    with pytest.raises(StorageUnreachableError, match=r"Read timeout|no answer in time"):
        storage.put_new("run", archive)
    with pytest.raises(StorageUnreachableError, match="Read timeout"):
        storage.names()
    assert time.monotonic() - began < 20
    server.go_on()
    assert storage.put_new("run", archive)


def test_a_bucket_that_does_not_exist_is_an_error(server: S3Server, archive: Path) -> None:
    storage = open_storage("s3://nothing/runs")
    with pytest.raises(StorageError, match="cannot store files in s3://nothing/runs: not found: The specified bucket"):
        storage.put_new("run", archive)
    with pytest.raises(StorageError, match="cannot list s3://nothing/runs: not found: The specified bucket"):
        storage.names()


def test_missing_and_wrong_credentials_are_an_error(
    server: S3Server, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        serving(tmp_path / "server.log", INITIAL_NO_AUTH_ACTION_COUNT="0"),
        pytest.raises(StorageError, match=f"not allowed to store files in {URL}") as wrong,
    ):
        open_storage(URL).put_new("run", archive)
    with monkeypatch.context() as without:
        without.delenv("AWS_ACCESS_KEY_ID")
        without.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(StorageError, match=f"not allowed to store files in {URL}: Unable to locate") as missing:
            open_storage(URL).put_new("run", archive)
    assert "planted" not in f"{wrong.value.message}{missing.value.message}"
    assert "AWS_PROFILE" in missing.value.hint
