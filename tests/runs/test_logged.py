"""A training that is left in its event log is compared as if it were held in memory, whatever its log looks like."""

import contextlib
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from detaudit import baseline
from detaudit.errors import StorageError
from detaudit.judge import comparer
from detaudit.judge.comparer import Matched, shared_of
from detaudit.judge.live import DigestFollower
from detaudit.model import AppliedRecipe, Difference, Recording, RunRecord, Stage, Training, record_of, series
from detaudit.runs import log_rows
from detaudit.runs.log import Process, read_run
from detaudit.runs.log_records import NameLine
from detaudit.runs.log_rows import LoggedLosses, LoggedSeries, Numbers, rows_of
from tests.fakes import hello
from tests.logs import hexed, row, write_log

STAGES = (Stage.INIT, Stage.RNG, Stage.FORWARD, Stage.UPDATE)

Row = tuple[int, int, Stage, str, float | None]
"""Lane, step, stage, digest and loss of an event."""


def rows(step: st.SearchStrategy[int]) -> st.SearchStrategy[list[Row]]:
    one = st.tuples(
        st.integers(0, 1),
        step,
        st.sampled_from(STAGES),
        st.sampled_from(["a", "b", "a b"]),
        st.sampled_from((None, 1.5, 2.5)),
    )
    return st.lists(one, max_size=40)


# As the recorder writes them, so that they are left in the log; with steps that ascend by stage only; in no order.
ORDERS: tuple[Callable[[Row], Any], ...] = (itemgetter(1), itemgetter(2, 1), lambda _: 0)
LOGS = st.tuples(st.sampled_from(ORDERS), rows(st.integers(0, 20))).map(lambda made: sorted(made[1], key=made[0]))

CHANGES = st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["digest", "drop", "stage", "again"])), max_size=3)


def changed(found: Sequence[Row], changes: Sequence[tuple[int, str]]) -> list[Row]:
    log = list(found)
    for place, how in changes:
        if place >= len(log):
            continue
        lane, step, stage, digest, loss = log[place]
        match how:
            case "digest":
                log[place] = lane, step, stage, "c", loss
            case "stage":
                log[place] = lane, step, Stage.RNG, digest, loss
            case "again":
                log.insert(place, log[place])
            case _:
                del log[place]
    return log


def held(found: Sequence[Row]) -> RunRecord:
    """What a run recorded, put together as simply as can be."""
    parts: dict[int, tuple[dict[Stage, dict[int, tuple[str, ...]]], dict[int, Any]]] = {}
    for lane, step, stage, digest, loss in found:
        digests, losses = parts.setdefault(lane, ({}, {}))
        digests.setdefault(stage, {}).setdefault(step, ())
        digests[stage][step] += (hexed(digest),)
        if loss is not None:
            losses[step] = loss
    made = [
        Training(
            framework="torch",
            unplaced=lane > 0,
            steps=max(step for steps in digests.values() for step in steps),
            digests=digests,
            losses=losses,
        )
        for lane, (digests, losses) in parts.items()
    ]
    return record_of(tuple(part for part in made if part.steps))


@contextlib.contextmanager
def limits(block: int = 4, most: int = 2, chunk: int = 5) -> Iterator[None]:
    """Divide short logs too."""
    with (
        mock.patch.object(series, "BLOCK", block),
        mock.patch.object(log_rows, "MOST_HELD", most),
        mock.patch.object(log_rows, "CHUNK", chunk),
    ):
        yield


def write(folder: Path, found: Sequence[Row]) -> Path:
    lines = [row(step, stage, digest, loss, lane=lane) for lane, step, stage, digest, loss in found]
    return write_log(folder / "logs" / "7.0.jsonl", [hello(), *lines, {"k": "bye", "how": "exit"}])


def logged(folder: Path) -> RunRecord:
    (process,) = read_run(folder)
    assert process.ended or not process.trained
    return record_of(tuple(process.trained))


def whole(a: RunRecord, b: RunRecord, through: int | None, shared: bool) -> Difference | None:
    """Compare what is held, in a single block."""
    with limits(block=10**9):
        return comparer.first_difference(a, b, through=through, shared=shared)


def difference(a: Training, b: Training) -> tuple[int, int] | None:
    """The first step and stage that differ, found by looking at all of them."""
    places = [
        (step, stage.position)
        for stage in STAGES
        for step in range(21)
        if a.digests.get(stage, {}).get(step) != b.digests.get(stage, {}).get(step)
    ]
    return min(places, default=None)


BACKWARD: list[Row] = [
    (0, step, stage, "a", step * (1.5 if stage is Stage.UPDATE else 1.0))
    for stage in (Stage.FORWARD, Stage.UPDATE)
    for step in range(1, 9)
]


@given(LOGS, CHANGES, st.none() | st.integers(0, 20), st.booleans())
@example(BACKWARD[:12], [], None, False)
def test_a_log_is_compared_like_what_is_held(
    found: list[Row], changes: list[tuple[int, str]], through: int | None, shared: bool
) -> None:
    other = changed(found, changes)
    a, b = held(found), held(other)
    with tempfile.TemporaryDirectory() as name, limits():
        for run, log in (("a", found), ("b", other)):
            write(Path(name, run), log)
        ours, theirs = logged(Path(name, "a")), logged(Path(name, "b"))
        for read, made in ((ours, a), (theirs, b)):
            assert read.ranks == made.ranks
            assert [dict(part.losses) for part in read.parts] == [part.losses for part in made.parts]
            assert [dict(part.digests) for part in read.parts] == [part.digests for part in made.parts]
            assert comparer.identity(read) == comparer.identity(made)
        assert (comparer.identity(ours) == comparer.identity(theirs)) == (result(a) == result(b))
        expected = whole(a, b, through, shared)
        for one, two in ((ours, theirs), (a, theirs), (ours, b)):
            assert comparer.first_difference(one, two, through=through, shared=shared) == expected
        if expected is not None:
            assert comparer.last_equal_step(ours, theirs, expected) == comparer.last_equal_step(a, b, expected)
        for x, y, u, v in zip(ours.parts, theirs.parts, a.parts, b.parts, strict=False):
            assert (
                shared_of(Matched(0, x, y), expected)
                == shared_of(Matched(0, u, v), expected)
                == in_both(u, v, expected)
            )


def in_both(a: Training, b: Training, differs: Difference | None) -> comparer.Shared:
    """What both sides recorded, found by looking at all of it."""
    places = [(step, stage) for stage in a.digests.keys() & b.digests.keys() for step in a.digests[stage]]
    places = [(step, stage) for step, stage in places if step in b.digests[stage]]
    at = differs.step if differs else -1
    return comparer.Shared(
        stages={stage for _, stage in places},
        steps=len({step for step, stage in places if step and stage in comparer.RESULTS}),
        before=max((step for step, _ in places if step < at), default=0),
        there={stage for step, stage in places if step == at},
    )


def result(run: RunRecord) -> tuple[list[Any], list[Any]]:
    """What must be equal, of placed and of unplaced trainings."""
    keys = []
    for part in run.parts:
        found = sorted(
            (stage, sorted(steps.items())) for stage, steps in part.digests.items() if stage is not Stage.RNG
        )
        keys.append((part.unplaced, (comparer.end(part), found)))
    return [key for unplaced, key in keys if not unplaced], sorted(key for unplaced, key in keys if unplaced)


@given(LOGS, CHANGES)
def test_the_first_step_and_stage_that_differ_are_found(found: list[Row], changes: list[tuple[int, str]]) -> None:
    found = [(0, *row[1:4], None) for row in found]
    other = changed(found, changes)
    with tempfile.TemporaryDirectory() as name, limits():
        write(Path(name, "a"), found)
        write(Path(name, "b"), other)
        a, b = logged(Path(name, "a")), logged(Path(name, "b"))
        if len(a.parts) != 1 or len(b.parts) != 1 or comparer.identity(a) == comparer.identity(b):
            return
        first = comparer.first_difference(a, b)
        assert first is not None
        place = difference(a.parts[0], b.parts[0])
        assert place is not None
        assert first.step == place[0]
        assert first.stage is Stage.STEPS or first.stage.position == place[1]


@given(LOGS.filter(bool), CHANGES)
def test_a_run_is_followed_beside_a_log_as_beside_what_is_held(
    found: list[Row], changes: list[tuple[int, str]]
) -> None:
    found = [(0, *row[1:]) for row in found]
    with tempfile.TemporaryDirectory() as name, limits():
        write(Path(name), found)
        references = [run.parts for run in (logged(Path(name)), held(found))]
        if not all(references):
            return
        read, made = (DigestFollower(parts[0]) for parts in references)
        for _, step, stage, digest, _ in changed(found, changes):
            assert read.differs(step, stage, hexed(digest)) == made.differs(step, stage, hexed(digest))


@given(LOGS, st.integers(0, 21))
def test_a_log_is_cut_like_what_is_held(found: list[Row], step: int) -> None:
    with tempfile.TemporaryDirectory() as name, limits():
        write(Path(name), found)
        cut, made = (run.each(lambda part: part.through(step)) for run in (logged(Path(name)), held(found)))
        assert cut.ranks == made.ranks
        assert [(dict(part.digests), dict(part.losses)) for part in cut.parts] == [
            (part.digests, part.losses) for part in made.parts
        ]
        assert comparer.identity(cut) == comparer.identity(made)
        assert [part.sampled for part in cut.parts] == [part.sampled for part in made.parts]


@given(LOGS)
def test_a_baseline_keeps_the_same_steps_of_a_log(found: list[Row]) -> None:
    found = sorted(found, key=lambda row: row[1])
    with tempfile.TemporaryDirectory() as name, limits():
        write(Path(name), found)
        kept = [
            baseline.thinned(
                Recording(command=(), recipe=AppliedRecipe(name="none", seed=0, flags=()), environment={}, run=run)
            )
            for run in (logged(Path(name)), held(found))
        ]
        assert kept[0] == kept[1]


def regular(steps: int, end: str = "a") -> list[Row]:
    return [
        (0, step, stage, end if step == steps else "a", 1.5 if stage is Stage.FORWARD else None)
        for step in range(1, steps + 1)
        for stage in (Stage.FORWARD, Stage.UPDATE)
    ]


def test_a_log_that_changed_is_never_compared_as_it_was(tmp_path: Path) -> None:
    with limits():
        log = write(tmp_path / "a", regular(40))
        write(tmp_path / "b", regular(40, "b"))
        a, b = logged(tmp_path / "a"), logged(tmp_path / "b")
        rows = rows_of(log)
        rows.write_bytes(rows.read_bytes().replace(b"a" + bytes(15), b"b" + bytes(15)))
        assert comparer.identity(a) != comparer.identity(b), "what was read is known"
        with pytest.raises(StorageError, match="has changed"):
            comparer.first_difference(a, b)
        rows.unlink()
        with pytest.raises(StorageError, match="is gone"):
            comparer.first_difference(a, b)


def test_runs_that_match_are_compared_without_their_logs(tmp_path: Path) -> None:
    with limits():
        a, b = (logged(write(tmp_path / name, regular(40)).parents[1]) for name in "ab")
        for name in "ab":
            (tmp_path / name / "logs" / "7.0.rows").unlink()
        assert comparer.first_difference(a, b) is None
        assert (a.ranks, a.steps, a.parts[0].last_loss) == (b.ranks, 40, 1.5)


def test_only_around_a_difference_is_a_log_read_again(tmp_path: Path) -> None:
    with limits(chunk=100):
        a, b = (logged(write(tmp_path / end, regular(4000, end)).parents[1]) for end in "ab")
        with mock.patch.object(log_rows, "read", wraps=log_rows.read) as read:
            assert comparer.first_difference(a, b) == Difference(rank=0, step=4000, stage=Stage.FORWARD)
        assert [end - start for (_, start, end), _ in read.call_args_list] == [2, 2], "of 8,000 rows each"


def test_losses_are_read_at_once(tmp_path: Path) -> None:
    with limits():
        (part,) = logged(write(tmp_path, regular(40)).parents[1]).parts
        assert isinstance(part.losses, LoggedLosses)
        steps, losses = part.losses.arrays()
        assert (steps.tolist(), set(losses.tolist())) == (list(range(1, 41)), {1.5})
        assert part.losses.through(7).arrays()[0].tolist() == list(range(1, 8))


def peak(folder: Path) -> int:
    """Return the bytes that reading a run and keeping it takes at most."""
    tracemalloc.start()
    try:
        processes: list[Process] = read_run(folder)
        assert all(isinstance(steps, LoggedSeries) for steps in processes[0].trainings[0].digests.values())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_steps(tmp_path: Path) -> None:
    with mock.patch.object(log_rows, "CHUNK", 2**9):
        for steps in (5_000, 40_000):
            write(tmp_path / str(steps), regular(steps))
        peak(tmp_path / "5000")  # what is imported and cached
        assert peak(tmp_path / "40000") < peak(tmp_path / "5000") + 40_000


def test_a_name_for_each_step_takes_little_memory() -> None:
    numbers = Numbers()
    tracemalloc.start()
    try:
        for step in range(20_000):
            numbers.take(NameLine(20_000 - step, f"lr={step}"))
        assert numbers.names[1] == "lr=19999"
        assert tracemalloc.get_traced_memory()[0] < 20_000 * 80
    finally:
        tracemalloc.stop()
