"""Logs of runs are bounded and keep their order, even if the run writes while the file is emptied."""

import itertools
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.launch import log as log_file
from detaudit.launch.log import Log, was_cut

LIMIT, TAIL, NOTICE = 1000, 200, log_file._NOTICE


@pytest.fixture(autouse=True, scope="module")
def _small() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_file, "LIMIT", LIMIT)
        patch.setattr(log_file, "TAIL", TAIL)
        yield


@given(st.lists(st.tuples(st.integers(1, 900), st.booleans()), max_size=20))
def test_a_log_keeps_the_end_of_the_output_in_order(writes: list[tuple[int, bool]]) -> None:
    numbers = itertools.count()
    written = b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        with Log(path) as log:
            for length, tick in writes:
                text = b"".join(b"%d\n" % next(numbers) for _ in range(length))[:length]
                written += text
                log.file.write(text)
                if tick:
                    log.bound()
        _is_the_end_of(path, written)


def _is_the_end_of(path: Path, written: bytes) -> None:
    read = path.read_bytes()
    assert len(read) <= LIMIT
    if not was_cut(path):
        assert read == written
        return
    notice, _, kept = read.partition(b"\n")
    assert written.endswith(kept)
    assert len(kept) >= min(TAIL, len(written))
    assert int(notice.split()[1]) == len(written) - len(kept)


def test_output_written_while_the_file_is_emptied_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = os.ftruncate

    def slowly(fd: int, length: int) -> None:
        emptied(fd, length)
        if running:
            os.write(fd, b"the end\n")

    monkeypatch.setattr(os, "ftruncate", slowly)
    path = tmp_path / "log"
    running = True
    with Log(path) as log:
        log.file.write(b"x" * 2 * LIMIT)
        log.bound()
        running = False
    assert was_cut(path)
    assert path.read_bytes().endswith(b"xthe end\n")
    _is_the_end_of(path, b"x" * 2 * LIMIT + b"the end\n")


def test_a_short_log_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Log(path) as log:
        log.file.write(b"y" * LIMIT)
        log.bound()
    assert path.read_bytes() == b"y" * LIMIT
    assert not was_cut(path)
