"""Logs of runs are bounded and keep their order."""

import itertools
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.launch import local
from detaudit.launch.local import Log, was_cut
from detaudit.outputs import text
from detaudit.outputs.text import Recorder

LIMIT, TAIL = 1000, 200


@pytest.fixture
def _small() -> object:
    with mock.patch.object(local, "LIMIT", LIMIT), mock.patch.object(local, "TAIL", TAIL):
        yield


def write(path: Path, pieces: Sequence[bytes]) -> Log:
    with Log(path, Recorder()) as log:
        for piece in pieces:
            os.write(log.input, piece)
    return log


@pytest.mark.usefixtures("_small")
@given(st.lists(st.tuples(st.integers(1, 900)), max_size=20))
def test_a_log_keeps_the_end_of_the_output_in_order(writes: list[tuple[int]]) -> None:
    numbers = itertools.count()
    pieces = [b"".join(b"%d\n" % next(numbers) for _ in range(length))[:length] for (length,) in writes]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        log = write(path, pieces)
        _is_the_end_of(path, b"".join(pieces))
        assert log.text is not None
        assert log.text.lines == text.text_of(b"".join(pieces).decode().splitlines()).lines


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


@pytest.mark.usefixtures("_small")
def test_a_log_that_is_full_is_not_cut(tmp_path: Path) -> None:
    write(tmp_path / "log", [b"y" * LIMIT])
    assert (tmp_path / "log").read_bytes() == b"y" * LIMIT
    assert not was_cut(tmp_path / "log")


def test_a_folder_without_text(tmp_path: Path) -> None:
    assert text.load(tmp_path) == (None, None)
    (tmp_path / text.NAME).write_bytes(b"\xff{")
    assert text.load(tmp_path) == (None, None)
