"""A folder as a storage, with several processes that write to it, and one that is killed."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from detaudit.errors import StorageError, UsageError
from detaudit.remote.storage import open_storage

WRITERS, NAMES, BYTES = 4, 100, 200_000

WRITER = """
import sys, time
from pathlib import Path
from detaudit.remote.storage import open_storage
folder, writer, names, writers = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[5])
archive = folder / f"archive{writer}"
archive.write_bytes(writer.encode() * int(sys.argv[4]))
for number in range(names):
    (folder / f"ready{number}-{writer}").touch()
    while len(list(folder.glob(f"ready{number}-*"))) < writers:
        time.sleep(0.001)
    if open_storage(str(folder / "runs")).put_new(f"run{number}", archive):
        print(f"run{number}")
"""

KILLED = """
import os, sys, time
from pathlib import Path
from detaudit.remote.storage import open_storage
os.link = lambda *names: print("written", flush=True) or time.sleep(600)
open_storage(sys.argv[1]).put_new("run", Path(sys.argv[2]))
"""

LAZY = """
import sys
from detaudit.remote.storage import open_storage
assert open_storage(sys.argv[1]).names() == []
print({"fsspec", "s3fs"} & set(sys.modules))
"""


def start(code: str, *words: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def a_file(folder: Path, contents: bytes = b"an archive") -> Path:
    path = folder / "archive"
    path.write_bytes(contents)
    return path


@pytest.mark.launches
def test_one_of_several_writers_gets_each_name_and_readers_see_whole_files(tmp_path: Path) -> None:
    writers = {str(one): start(WRITER, tmp_path, one, NAMES, BYTES, WRITERS) for one in range(WRITERS)}
    storage, owners = open_storage(str(tmp_path / "runs")), dict[str, set[str]]()
    while len(owners) < NAMES or any(one.poll() is None for one in writers.values()):
        for name in storage.names():
            storage.fetch(name, tmp_path / "copy")
            read = (tmp_path / "copy").read_text()
            assert read == read[0] * BYTES, name
            owners.setdefault(name, set()).add(read[0])
    won = {writer: set(one.communicate()[0].split()) for writer, one in writers.items()}
    assert {one.returncode for one in writers.values()} == {0}
    assert sum(map(len, won.values())) == NAMES
    assert owners == {name: {writer} for writer, own in won.items() for name in own}
    assert storage.names() == sorted(f"run{number}" for number in range(NAMES))
    assert not list((tmp_path / "runs").glob(".*"))


@pytest.mark.launches
def test_a_writer_that_is_killed_leaves_nothing_that_is_listed(tmp_path: Path) -> None:
    storage, file = open_storage(str(tmp_path / "runs")), a_file(tmp_path)
    with start(KILLED, tmp_path / "runs", file) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        writer.send_signal(signal.SIGKILL)
    assert list((tmp_path / "runs").iterdir())
    assert storage.names() == []
    assert storage.put_new("run", file)
    assert storage.names() == ["run"]


@pytest.mark.launches
def test_a_folder_needs_no_package(tmp_path: Path) -> None:
    with start(LAZY, tmp_path / "runs") as done:
        assert done.communicate()[0] == "set()\n"


def test_what_is_stored_is_not_replaced(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "a/b"))
    assert storage.names() == []
    assert storage.put_new("run", a_file(tmp_path, b"first"))
    assert not storage.put_new("run", a_file(tmp_path, b"second"))
    storage.fetch("run", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"first"
    assert storage.names() == ["run"]
    assert [one.name for one in (tmp_path / "a/b").iterdir()] == ["run"]
    assert (tmp_path / "a/b/run").stat().st_mode & 0o777 == 0o600


def test_temporary_files_and_folders_are_not_listed(tmp_path: Path) -> None:
    for name in ("run2", "run10", ".run3.0123"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert open_storage(str(tmp_path)).names() == ["run10", "run2"]


@pytest.mark.parametrize("name", ["", ".hidden", "..", "a/b"])
def test_a_name_that_would_not_be_listed_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a name"):
        open_storage(str(tmp_path / "runs")).put_new(name, a_file(tmp_path))
    with pytest.raises(ValueError, match="not a name"):
        open_storage(str(tmp_path)).fetch(name, tmp_path / "copy")


def test_a_link_whose_answer_was_lost_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def lose_the_answer(source: Path, target: Path) -> NoReturn:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", lose_the_answer)
    assert open_storage(str(tmp_path / "runs")).put_new("run", a_file(tmp_path))


def test_a_file_system_without_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*names: Path) -> NoReturn:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(StorageError, match=r"cannot write .*/runs/run: its file system has no hard links") as caught:
        open_storage(str(tmp_path / "runs")).put_new("run", a_file(tmp_path))
    assert "NFS" in caught.value.hint
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_is_full_is_an_error_and_leaves_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=os.strerror(number)):
        open_storage(str(tmp_path / "runs")).put_new("run", a_file(tmp_path))
    assert not list((tmp_path / "runs").iterdir())


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    storage = open_storage(str(a_file(tmp_path)))
    with pytest.raises(StorageError, match=r"cannot list .*/archive: Not a directory"):
        storage.names()
    with pytest.raises(StorageError, match="cannot write"):
        storage.put_new("run", a_file(tmp_path))


def test_a_file_that_is_gone_is_an_error_and_leaves_no_copy(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot copy .*/run: No such file"):
        open_storage(str(tmp_path)).fetch("run", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("host", ["", "localhost"])
def test_a_url_of_a_file_names_a_folder(host: str, tmp_path: Path) -> None:
    (tmp_path / "my runs").mkdir()
    (tmp_path / "my runs/run").touch()
    storage = open_storage(f"file://{host}{tmp_path}/my%20runs")
    assert (storage.names(), storage.url) == (["run"], f"file://{host}{tmp_path}/my%20runs")


def test_a_url_of_a_file_on_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="file://node3/runs names a host"):
        open_storage("file://node3/runs")
