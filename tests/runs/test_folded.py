"""A training of which only trees are read is compared as if it were held in memory, and with few reads."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from detaudit.errors import StorageError
from detaudit.judge import comparer
from detaudit.judge.comparer import Matched, shared_digests
from detaudit.model import Difference, RunRecord, Stage, blocks, record_of
from detaudit.runs import log as folded
from detaudit.runs import log_pages
from tests.runs.test_logged import BACKWARD, CHANGES, LOGS, Row, changed, held, limits, logged, regular, whole, write


@contextlib.contextmanager
def small() -> Iterator[None]:
    """Make high trees of short logs."""
    with limits(), mock.patch.object(blocks, "FAN_OUT", 2), mock.patch.object(log_pages, "FAN_OUT", 2):
        yield


def trees(folder: Path) -> RunRecord:
    """What is read of a run: all its trainings are in one process."""
    (process,) = folded.read_folded(folder)
    return record_of(tuple(process.trained))


def made(folder: Path, found: list[Row]) -> RunRecord:
    """Write a log, fold it, and return what is read of it."""
    folded.fold(write(folder, found))
    return trees(folder)


@given(LOGS, CHANGES, st.none() | st.integers(0, 20), st.booleans())
@example(BACKWARD, [(15, "digest")], None, False)
@example(BACKWARD, [(3, "stage"), (7, "drop")], 6, True)
def test_trees_are_compared_like_what_is_held(
    found: list[Row], changes: list[tuple[int, str]], through: int | None, shared: bool
) -> None:
    other = changed(found, changes)
    a, b = held(found), held(other)
    with tempfile.TemporaryDirectory() as name, small():
        ours, theirs = made(Path(name, "a"), found), made(Path(name, "b"), other)
        read = logged(Path(name, "b"))
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
            assert list(shared_digests(Matched(0, x, y))) == list(shared_digests(Matched(0, u, v)))


@given(LOGS)
def test_a_log_with_trees_shows_what_it_shows_without(found: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as name, small():
        log = write(Path(name), found)
        (plain,) = folded.read_run(Path(name))
        assert folded.fold(log) or found != sorted(found, key=lambda row: row[1])
        (process,) = folded.read_folded(Path(name))
        assert process == plain
        assert folded.read(log) is None or [type(one.losses) for one in process.trainings] == [
            type(one.losses) for one in plain.trainings
        ]


def test_runs_with_equal_roots_are_compared_without_their_logs(tmp_path: Path) -> None:
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
            log.unlink()
        with mock.patch.object(log_pages.FoldedTree, "_read", side_effect=AssertionError("no node is needed")):
            one, two, three = (trees(tmp_path / name) for name in "abc")
            assert comparer.identity(one) == comparer.identity(two) == comparer.identity(three)
            assert comparer.first_difference(one, two) is None
            assert comparer.first_difference(one, three) is None, "a generator alone is no result"


@pytest.mark.parametrize(("steps", "height"), [(60, 1), (1_000, 2), (16_000, 3)])
def test_a_first_difference_takes_reads_by_the_height_of_the_tree(tmp_path: Path, steps: int, height: int) -> None:
    with limits(size=2**12):
        for end in "ab":
            assert folded.fold(write(tmp_path / end, regular(steps, end)))
        a, b = (trees(tmp_path / end) for end in "ab")
        read = log_pages.FoldedTree._read
        with (
            mock.patch.object(log_pages.FoldedTree, "_read", autospec=True, side_effect=read) as nodes,
            mock.patch.object(log_pages, "Piece", wraps=log_pages.Piece) as piece,
        ):
            found = comparer.first_difference(a, b)
        assert found == Difference(rank=0, step=steps, stage=Stage.FORWARD)
        assert piece.call_count == 2, "one block of each log"
        assert nodes.call_count == 2 * 2 * height, "a path for each stage and run"


def test_without_its_log_a_run_that_differs_says_which_is_missing(tmp_path: Path) -> None:
    with limits():
        for end in "ab":
            log = write(tmp_path / end, regular(40, end))
            assert folded.fold(log)
            log.unlink()
        with pytest.raises(StorageError, match=r"a/logs/7\.0\.jsonl is gone"):
            comparer.first_difference(trees(tmp_path / "a"), trees(tmp_path / "b"))


def test_a_log_is_fetched_when_a_step_is_asked_for(tmp_path: Path) -> None:
    with limits():
        found = {}
        for end in "ab":
            log = write(tmp_path / end, regular(40, end))
            assert folded.fold(log)
            away, fetch = log.rename(tmp_path / f"{end}.jsonl"), mock.Mock()
            fetch.side_effect = lambda away=away, log=log: shutil.copy(away, log)
            (process,) = folded.read_folded(tmp_path / end, fetch=fetch)
            found[end] = record_of(tuple(process.trained)), fetch
        (a, of_a), (b, of_b) = found.values()
        assert comparer.identity(a) != comparer.identity(b)
        assert (of_a.call_count, of_b.call_count) == (0, 0)
        assert comparer.first_difference(a, b) == Difference(rank=0, step=40, stage=Stage.FORWARD)
        assert (of_a.call_count, of_b.call_count) == (1, 1)


def test_texts_in_a_head_are_changed_and_its_log_is_read_at_the_same_places(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(400))
        assert folded.fold(log)
        before, text = [(dict(one.digests), dict(one.losses)) for one in held(regular(400)).parts], log.read_bytes()
        assert folded.rename(log, lambda text: text.replace(b'"train.py"', b'"/a/much/longer/path/train.py"'))
        (process,) = folded.read_folded(tmp_path)
        assert process.hello.argv == ("python", "/a/much/longer/path/train.py")
        assert log.read_bytes() == text
        assert [(dict(one.digests), dict(one.losses)) for one in process.trained] == before


def test_a_head_that_cannot_be_read_is_not_changed(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        assert folded.fold(log)
        path = folded.tree_file(log)
        broken = path.read_bytes().replace(b"train.py", b"brain.py")
        path.write_bytes(broken)
        assert not folded.rename(log, lambda text: text)
        assert path.read_bytes() == broken


def test_a_head_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    with limits(), mock.patch.object(folded, "_MOST_HEAD", 100):
        log = write(tmp_path, regular(40))
        assert not folded.fold(log)
        assert not folded.tree_file(log).exists()


def test_trees_of_another_log_do_not_count(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        assert folded.fold(log)
        with log.open("a") as file:
            file.write(log.read_text().splitlines()[-2].replace(":40,", ":41,") + "\n")
        assert folded.read(log) is None
        assert trees(tmp_path).steps == 41


@given(st.integers(0, 10**4), st.sampled_from(["cut", "flip", "longer"]))
@example(4706, "flip")  # an end before its start
def test_trees_that_are_not_whole_are_never_compared(place: int, how: str) -> None:
    """Either the log is read in their place, or the error names the file."""
    with tempfile.TemporaryDirectory() as name, small():
        runs = [Path(name, end) for end in "ab"]
        for run in runs:
            assert folded.fold(write(run, regular(40, run.name)))
        path = folded.tree_file(runs[0] / "logs" / "7.0.jsonl")
        data = bytearray(path.read_bytes())
        place %= len(data)
        if how == "flip":
            data[place] ^= 4
        path.write_bytes(data[:place] if how == "cut" else data + b"x" if how == "longer" else data)
        with contextlib.suppress(StorageError) if how == "flip" else contextlib.nullcontext():
            found = comparer.first_difference(*map(trees, runs))
            assert found == Difference(rank=0, step=40, stage=Stage.FORWARD)


def test_trees_that_are_not_whole_without_their_log_leave_a_process_that_is_torn(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        assert folded.fold(log)
        log.unlink()
        path = folded.tree_file(log)
        path.write_bytes(path.read_bytes()[:-1])
        (process,) = folded.read_folded(tmp_path)
        assert (process.hello.pid, process.torn, process.trainings) == (7, True, ())


def test_a_node_or_a_head_that_was_changed_is_noticed(tmp_path: Path) -> None:
    with limits():
        for end in "ab":
            assert folded.fold(write(tmp_path / end, regular(400, end)))
        log = tmp_path / "a" / "logs" / "7.0.jsonl"
        path = folded.tree_file(log)
        data = path.read_bytes()
        for place in range(len(data) - log_pages.ENTRY.size, len(data) - 16):  # the number and the digest of a top
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            with pytest.raises(StorageError, match=r"7\.0\.jsonl\.tree is gone, or has changed"):
                comparer.first_difference(trees(tmp_path / "a"), trees(tmp_path / "b"))
        path.write_bytes(data.replace(b"train.py", b"brain.py"))
        assert folded.read(log) is None


def test_a_log_whose_steps_do_not_ascend_has_no_trees(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40)[::-1])
        assert not folded.fold(log)
        assert trees(tmp_path).steps == 40


@pytest.mark.parametrize("steps", [0, 40])
def test_a_step_that_no_recorder_wrote_is_left_to_the_log(tmp_path: Path, steps: int) -> None:
    with limits():
        log = write(tmp_path, [*regular(steps), (0, 2**70, Stage.UPDATE, "a", None)])
        assert not folded.fold(log)
        assert trees(tmp_path).steps == 2**70


def test_trees_that_cannot_be_written(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        folded.tree_file(log).mkdir()
        with pytest.raises(StorageError, match=r"cannot write .*7\.0\.jsonl\.tree"):
            folded.fold(log)


def test_every_log_of_a_run_is_folded(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path, regular(40))
        (log.parent / "8.0.jsonl").write_text(log.read_text().replace('"pid":7', '"pid":8'))
        folded.fold_run(tmp_path)
        assert [folded.read(one) is not None for one in folded.logs(log.parent)] == [True, True]
        assert [process.hello.pid for process in folded.read_folded(tmp_path)] == [7, 8]
