"""Which files a run left, which of them a later one read, and what must be gone for a run to start without them."""

import os
import sys
from pathlib import Path

import pytest

from detaudit import wire
from detaudit.launch import workspace
from detaudit.launch.workspace import LeftFile, LeftoverFiles, ReadFile, RunName

FIRST, SECOND = RunName("none", 1), RunName("none", 2)


def _can_watch() -> bool:
    if sys.platform != "linux":
        return False
    import inotify_simple

    try:
        with inotify_simple.INotify() as inotify:
            inotify.add_watch(os.sep, inotify_simple.flags.DELETE_SELF)
    except OSError:
        return False
    return True


needs_inotify = pytest.mark.skipif(not _can_watch(), reason="inotify is unavailable")


def write(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1")
    return str(path)


@needs_inotify
@pytest.mark.launches
def test_the_first_access_of_a_file_tells_a_read_from_a_write(tmp_path: Path) -> None:
    files = LeftoverFiles()
    read, rewritten, unused = (write(tmp_path / name) for name in ("read", "rewritten", "unused"))
    files.after_run(FIRST, (), [(read, False), (rewritten, True), (unused, False)])
    watching = files.before_run(tmp_path / "live", [str(tmp_path)], ["/cache/"])
    assert watching.complete
    Path(rewritten).write_text("2")
    Path(rewritten).read_text()
    Path(read).read_text()
    assert watching.stop() == {read}
    told = (tmp_path / "live" / wire.KNOWN_FILES).read_bytes()
    assert told.split(b"\0\0")[:2] == [str(tmp_path).encode(), b"/cache/"]
    assert told.split(b"\0\0")[2].decode().split("\0") == [read, rewritten, unused]


def test_a_line_is_preferred_to_a_read_without_one(tmp_path: Path) -> None:
    files, path = LeftoverFiles(), write(tmp_path / "a")
    files.after_run(FIRST, (), [(path, False)])
    found = files.after_run(SECOND, [(path, "", 0), (path, "train.py", 3), (path, "", 0), ("other", "", 0)], ())
    assert found == (ReadFile(LeftFile(path, FIRST, created=True), SECOND, "train.py", 3),)


def test_what_existed_before_the_audit_is_never_put_aside(tmp_path: Path) -> None:
    files, old, new = LeftoverFiles(), write(tmp_path / "old"), write(tmp_path / "new")
    files.after_run(FIRST, (), [(old, True), (new, False)])
    files.after_run(SECOND, (), [(old, False), (new, True)])
    reads = files.after_run(RunName("none", 3), [(old, "", 0), (new, "", 0)], ())
    assert [(one.left.created, one.left.by) for one in reads] == [(True, SECOND), (False, SECOND)]
    assert files.to_put_aside(one.left for one in reads) == (new,)


def test_a_folder_is_put_aside_only_if_all_in_it_is_ours(tmp_path: Path) -> None:
    files, top = LeftoverFiles(), tmp_path / "made"
    paths = [write(top / "deep" / "a"), write(top / "b")]
    files.after_run(FIRST, (), [(path, False) for path in paths])
    files.note_folders([str(top), str(top / "deep")])
    reads = files.after_run(SECOND, [(path, "", 0) for path in paths], ())
    assert files.to_put_aside(one.left for one in reads) == (str(top),)
    write(top / "somebody's")
    assert sorted(files.to_put_aside(one.left for one in reads)) == [paths[1], str(top / "deep")]


def test_folders_of_everybody_are_not_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    files, path = LeftoverFiles(), write(tmp_path / ".cache" / "split" / "a")
    files.note_folders([str(tmp_path / ".cache"), str(tmp_path / ".cache" / "split")])
    files.after_run(FIRST, (), [(path, False)])
    reads = files.after_run(SECOND, [(path, "", 0)], ())
    assert files.to_put_aside(one.left for one in reads) == (str(tmp_path / ".cache" / "split"),)


def test_without_inotify_reads_of_native_code_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_new_watch", lambda paths: None)
    files, path = LeftoverFiles(), write(tmp_path / "a")
    assert files.before_run(tmp_path / "live", (), ()).stop() == frozenset()
    assert files.complete
    files.after_run(FIRST, (), [(path, False)])
    files.before_run(tmp_path / "live", (), ())
    assert not files.complete


@needs_inotify
@pytest.mark.launches
def test_more_files_than_can_be_watched_are_watched_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "MOST_WATCHED", 3)
    files = LeftoverFiles()
    paths = [write(tmp_path / "made" / name) for name in ("read", "rewritten", "replaced", "removed", "unused")]
    files.after_run(FIRST, (), [(path, False) for path in paths])
    watching = files.before_run(tmp_path / "live", (), ())
    assert watching.complete
    write(tmp_path / "made" / "new")
    Path(tmp_path, "made", "new").rename(paths[2])
    Path(paths[1]).write_text("2")
    Path(paths[3]).unlink()
    write(Path(paths[3]))
    for path in paths[:4]:
        Path(path).read_text()
    os.listdir(tmp_path / "made")
    os.stat(paths[4])
    assert watching.stop() == {paths[0]}
    assert files.complete
    files.after_run(FIRST, (), [(write(tmp_path / str(number) / "a"), False) for number in range(3)])
    files.before_run(tmp_path / "live", (), ()).stop()
    assert not files.complete


@pytest.mark.full
@needs_inotify
@pytest.mark.launches
def test_no_access_is_missed_because_there_were_many(tmp_path: Path) -> None:
    files = LeftoverFiles()
    rewritten, read = write(tmp_path / "rewritten"), write(tmp_path / "read")
    files.after_run(FIRST, (), [(rewritten, False), (read, False)])
    watching = files.before_run(tmp_path / "live", (), ())
    assert watching.complete
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 2**17:
        pytest.skip("the kernel keeps too many events to have them all")
    for _ in range(most // 2 + 1):  # each is written, then read, which are two events
        Path(rewritten).write_text("2")
        Path(rewritten).read_text()
    Path(read).read_text()
    assert watching.stop() == {read}
    assert files.complete


@needs_inotify
@pytest.mark.launches
def test_more_files_than_the_recorder_knows_may_have_been_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MOST_KNOWN", 1)
    files = LeftoverFiles()
    files.after_run(FIRST, (), [(write(tmp_path / name), False) for name in ("a", "b")])
    watching = files.before_run(tmp_path / "live", (), ())
    watching.stop()
    assert watching.complete
    assert not files.complete
