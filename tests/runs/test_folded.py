"""A training of which only the digests of blocks are read is compared as if it were held in memory."""

import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from detaudit.errors import StorageError
from detaudit.judge import comparer
from detaudit.judge.comparer import Matched, shared_of
from detaudit.model import Difference, RunRecord, Stage, record_of
from detaudit.runs import log as folded
from detaudit.runs import log_rows
from detaudit.runs.log_rows import blocks_of, rows_of
from tests.runs.test_logged import BACKWARD, CHANGES, LOGS, Row, changed, held, limits, logged, regular, whole, write


def made(folder: Path, found: list[Row]) -> RunRecord:
    """Write a log, fold it, and return what is read of it while its rows are away, until one is asked for."""
    log = write(folder, found)
    if not folded.fold(log):
        return logged(folder)
    away = shutil.move(rows_of(log), folder / "rows")

    def fetch() -> None:
        shutil.copyfile(away, rows_of(log))

    (process,) = folded.read_run(folder, fetch)
    return record_of(tuple(process.trained))


@given(LOGS, CHANGES, st.none() | st.integers(0, 20), st.booleans())
@example(BACKWARD, [(15, "digest")], None, False)
@example(BACKWARD, [(3, "stage"), (7, "drop")], 6, True)
def test_blocks_are_compared_like_what_is_held(
    found: list[Row], changes: list[tuple[int, str]], through: int | None, shared: bool
) -> None:
    other = changed(found, changes)
    a, b = held(found), held(other)
    with tempfile.TemporaryDirectory() as name, limits():
        ours, theirs = made(Path(name, "a"), found), made(Path(name, "b"), other)
        read = logged(write(Path(name, "c"), other).parents[1])
        expected = whole(a, b, through, shared)
        for one, two in ((ours, theirs), (a, theirs), (ours, b), (ours, read)):
            assert comparer.first_difference(one, two, through=through, shared=shared) == expected
        for mine, plain in ((ours, a), (theirs, b)):
            assert mine.ranks == plain.ranks
            assert comparer.identity(mine) == comparer.identity(plain)
            assert [dict(part.losses) for part in mine.parts] == [part.losses for part in plain.parts]
            assert [dict(part.digests) for part in mine.parts] == [part.digests for part in plain.parts]
        if expected is not None:
            assert comparer.last_equal_step(ours, theirs, expected) == comparer.last_equal_step(a, b, expected)
        for x, y, u, v in zip(ours.parts, theirs.parts, a.parts, b.parts, strict=False):
            assert shared_of(Matched(0, x, y), expected) == shared_of(Matched(0, u, v), expected)


def test_runs_with_equal_blocks_are_compared_without_their_rows(tmp_path: Path) -> None:
    explained: list[Row] = [
        (0, step, stage, "c" if step == 33 and stage is Stage.RNG else "a", None)
        for step in range(1, 41)
        for stage in (Stage.RNG, Stage.UPDATE)
    ]
    plain: list[Row] = [(lane, step, stage, "a", None) for lane, step, stage, *_ in explained]
    with limits():
        for name, found in (("a", plain), ("b", plain), ("c", explained)):
            log = write(tmp_path / name, found)
            assert folded.fold(log)
            rows_of(log).unlink()
        one, two, three = (logged(tmp_path / name) for name in "abc")
        assert comparer.identity(one) == comparer.identity(two) == comparer.identity(three)
        assert comparer.first_difference(one, two) is None
        assert comparer.first_difference(one, three) is None, "a generator alone is no result"


def test_without_its_rows_a_run_that_differs_says_which_are_missing(tmp_path: Path) -> None:
    with limits():
        for end in "ab":
            log = write(tmp_path / end, regular(40, end))
            assert folded.fold(log)
            rows_of(log).unlink()
        with pytest.raises(StorageError, match=r"a/logs/7\.0\.rows is gone"):
            comparer.first_difference(logged(tmp_path / "a"), logged(tmp_path / "b"))


def test_rows_are_fetched_when_a_step_is_asked_for(tmp_path: Path) -> None:
    with limits():
        found = {}
        for end in "ab":
            rows = rows_of(log := write(tmp_path / end, regular(40, end)))
            assert folded.fold(log)
            away, fetch = rows.rename(tmp_path / f"{end}.rows"), mock.Mock()
            fetch.side_effect = lambda away=away, rows=rows: shutil.copy(away, rows)
            (process,) = folded.read_run(tmp_path / end, fetch)
            found[end] = record_of(tuple(process.trained)), fetch
        (a, of_a), (b, of_b) = found.values()
        assert comparer.identity(a) != comparer.identity(b)
        assert (of_a.call_count, of_b.call_count) == (0, 0)
        assert comparer.first_difference(a, b) == Difference(rank=0, step=40, stage=Stage.FORWARD)
        assert (of_a.call_count, of_b.call_count) == (1, 1)


@given(st.integers(0, 10**4), st.sampled_from(["cut", "flip", "longer"]))
def test_blocks_that_are_not_whole_leave_a_process_that_is_torn(place: int, how: str) -> None:
    with tempfile.TemporaryDirectory() as name, limits():
        log = write(Path(name), regular(40))
        assert folded.fold(log)
        rows_of(log).unlink()
        path = blocks_of(log)
        data = bytearray(path.read_bytes())
        place %= len(data)
        if how == "flip":
            data[place] ^= 4
        path.write_bytes(data[:place] if how == "cut" else data + b"x" if how == "longer" else data)
        (process,) = folded.read_run(Path(name))
        assert (process.hello.pid, process.torn, process.trained) == (7, True, [])


def test_blocks_beside_their_rows_are_not_read(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        assert folded.fold(log)
        blocks_of(log).write_bytes(b"")
        assert logged(tmp_path).steps == 40


def test_a_log_whose_steps_do_not_ascend_has_no_blocks(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40)[::-1])
        assert not folded.fold(log)
        assert not folded.is_folded(rows_of(log))


def test_short_trainings_have_none_and_are_held_beside_a_long_one(tmp_path: Path) -> None:
    short = [(1, step, Stage.UPDATE, "a", 0.5) for step in (1, 2)]
    with limits(most=10):
        assert not folded.fold(write(tmp_path / "a", [*short]))
        log = write(tmp_path / "b", [*short, *regular(40)])
        assert folded.fold(log)
        assert folded.is_folded(rows_of(log))
        rows_of(log).unlink()
        assert [dict(part.losses) for part in logged(tmp_path / "b").parts if part.unplaced] == [{1: 0.5, 2: 0.5}]


def test_blocks_that_cannot_be_written(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        blocks_of(log).mkdir()
        with pytest.raises(StorageError, match=r"cannot write .*7\.0\.blocks"):
            folded.fold(log)


def test_every_log_of_a_run_is_folded(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        other = log.with_name("8.0.jsonl")
        other.write_text(log.read_text().replace('"pid":7', '"pid":8'))
        shutil.copy(rows_of(log), rows_of(other))
        folded.fold_run(tmp_path)
        assert [log_rows.folded(one) is not None for one in (log, other)] == [True, True]
        assert [process.hello.pid for process in folded.read_run(tmp_path)] == [7, 8]
