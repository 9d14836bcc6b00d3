"""Where two runs take different paths is found, whatever ran before, and a variable at the first line that differs."""

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.recorder.lines import tracer
from detaudit.runs.log_records import Line
from detaudit.trace import lines
from detaudit.trace.lines import DECODER, Assigned, CodeLine, Differing, Fork, Ran, assignments, fork, watched

PLACES = st.builds(CodeLine, st.sampled_from(["/train.py", "/model.py"]), st.integers(1, 6))
LOOPS = st.tuples(st.lists(PLACES, min_size=1, max_size=4), st.integers(1, 5))
PROGRAMS = st.lists(LOOPS, max_size=8).map(lambda loops: [place for body, times in loops for place in body * times])
A, B, C = (CodeLine("/train.py", line) for line in (10, 11, 12))


class Stream:
    """Takes what the recorder writes."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, kind: str, **fields: Any) -> None:
        self.lines.append({"k": kind, **fields})


class Run:
    """What the recorder writes of threads that run these lines."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.n = 0
        self._threads: dict[str, tracer.Paths] = {}

    def ran(
        self,
        places: Sequence[CodeLine],
        step: int = 1,
        thread: str = "MainThread",
        ended: bool = False,
        values: dict[int, str] | None = None,
    ) -> "Run":
        """Run lines; ``values`` has what ``x`` is after so many of them."""
        record = self._threads.setdefault(thread, tracer.Paths(self.stream, thread))  # type: ignore[arg-type]
        for number, place in enumerate(places, 1):
            record.add(place)
            if number in (values or {}):
                self.assign(thread, step, place, (values or {})[number], record.lines)
        record.write(step, ended)
        return self

    def assign(self, thread: str, step: int, place: CodeLine, digest: str, at: int) -> None:
        line = {"thread": thread, "at": at, "step": step, "file": place.file, "line": place.line}
        self.stream.write("assigned", n=self.n, **line, name="x", digest=digest, bag=digest[:1], text="")
        self.n += 1

    def lines(self) -> Iterator[Line]:
        for line in self.stream.lines:
            yield DECODER.decode(json.dumps(line))


def steps(run: Run, program: Sequence[CodeLine], cuts: Sequence[int], ended: bool = True) -> Run:
    """Run a program in the main thread, with steps that end at ``cuts``."""
    bounds = [0, *sorted(cut % (len(program) + 1) for cut in cuts), len(program)]
    for step, (first, last) in enumerate(itertools.pairwise(bounds), 1):
        run.ran(program[first:last], step, ended=ended and last == len(program))
    return run


CUTS = st.lists(st.integers(0, 50), max_size=4)


@given(PROGRAMS, CUTS, CUTS)
def test_the_same_lines_are_no_fork_regardless_of_where_steps_end(
    program: list[CodeLine], cuts: list[int], others: list[int]
) -> None:
    assert fork(steps(Run(), program, cuts).lines(), steps(Run(), program, others).lines()) is None


@given(PROGRAMS, PROGRAMS, PROGRAMS, CUTS, CUTS)
def test_a_fork_is_found_exactly(
    before: list[CodeLine], rest: list[CodeLine], other: list[CodeLine], cuts: list[int], others: list[int]
) -> None:
    a, b = steps(Run(), [*before, B, *rest], cuts), steps(Run(), [*before, C, *other], others)
    found = fork(a.lines(), b.lines())
    assert found is not None
    assert (found.last, found.a, found.b) == (before[-1] if before else None, B, C)


@given(PROGRAMS, st.lists(PLACES, min_size=1), CUTS)
def test_a_run_that_ends_diverges_from_one_that_continues(
    before: list[CodeLine], rest: list[CodeLine], cuts: list[int]
) -> None:
    longer = steps(Run(), [*before, *rest], cuts)
    found = fork(steps(Run(), before, cuts).lines(), longer.lines())
    assert found is not None
    assert (found.last, found.a, found.b) == (before[-1] if before else None, None, rest[0])
    assert fork(steps(Run(), before, cuts, ended=False).lines(), longer.lines()) is None  # it was only cut off


@given(PROGRAMS, PROGRAMS, CUTS)
def test_what_is_kept_as_a_digest_is_still_compared(
    before: list[CodeLine], rest: list[CodeLine], cuts: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracer, "_MOST_SEQUENCES", 2)
        a, b = [*before, B, *rest], [*before, C, *rest]
        assert fork(steps(Run(), a, cuts).lines(), steps(Run(), a, cuts).lines()) is None
        found = fork(steps(Run(), a, cuts).lines(), steps(Run(), b, cuts).lines())
    assert found is not None
    if found.exact:
        assert (found.a, found.b) == (B, C)
        assert found.last in (before[-1] if before else None, None)
    else:
        assert found.last in {*before, None}


@given(st.lists(PROGRAMS, max_size=6), CUTS)
def test_stretches_may_be_renumbered(programs: list[list[CodeLine]], cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracer, "_MOST_PLACES", 3)
        a, b = Run(), Run()
        for step, program in enumerate(programs, 1):
            a.ran(program, step)
            b.ran(program, step)
        a.ran([A, B], 9)
        b.ran([A, C], 9)
        found = fork(a.lines(), b.lines())
        assert (found and found.last, found and found.a, found and found.b) == (A, B, C)


def test_a_loop_that_runs_for_a_time() -> None:
    body, end = [A, B], CodeLine("/train.py", 20)
    a, b = Run().ran([]), Run().ran([])
    for run, times in ((a, 900), (b, 1100)):
        for step in range(1, times + 1):
            run.ran(body, step)
        run.ran([A, end], times + 1, ended=True)
    assert fork(a.lines(), b.lines()) == Fork("MainThread", 901, last=A, a=end, b=B)
    assert len([line for line in a.stream.lines if line["k"] == "path"]) == 2  # however often the loop ran


def test_of_several_threads_the_earliest_step_counts() -> None:
    a, b = Run(), Run()
    a.ran([A, B], 3).ran([A], 2, "worker", ended=True).ran([A], 1, "only here", ended=True)
    b.ran([B], 2, "worker", ended=True).ran([A, C], 3)
    assert fork(a.lines(), b.lines()) == Fork("worker", 2, last=None, a=A, b=B)


@given(st.lists(PLACES, min_size=1, max_size=30), st.data())
def test_the_first_value_that_differs_is_found(program: list[CodeLine], data: st.DataObject) -> None:
    values = {at: str(at) for at in data.draw(st.sets(st.integers(1, len(program))))} | {len(program): "last"}
    changed = data.draw(st.sets(st.sampled_from(sorted(values)), max_size=3))
    different = {at: "other" if at in changed else value for at, value in values.items()}
    a = Run().ran(program, values=values, ended=True)
    b = Run().ran(program, values=different, ended=True)
    assert [one.one.at for one in assignments(a.lines(), b.lines())] == sorted(changed)


def test_values_after_a_fork_are_not_compared() -> None:
    a = Run().ran([A, B, B], values={2: "b", 3: "b"})
    b = Run().ran([A, C, C], values={2: "c", 3: "c"})
    assert list(assignments(a.lines(), b.lines())) == []
    a, b = Run().ran([A, B], values={1: "a"}), Run().ran([A, C], values={1: "b"})
    (found,) = assignments(a.lines(), b.lines())
    assert found.one.line == A.line


def test_a_change_that_only_one_run_recorded_differs() -> None:
    a, b = Run().ran([A, B, C], values={2: "changed"}), Run().ran([A, B, C])
    (found,) = assignments(a.lines(), b.lines())
    assert (found.one.line, found.b, found.reordered) == (B.line, None, False)
    # At a fork, what a run examined depends on the path it took.
    a, b = Run().ran([A, B], values={1: "changed"}), Run().ran([A, C])
    assert list(assignments(a.lines(), b.lines())) == []


def test_a_different_order_is_distinguished_from_a_different_value() -> None:
    def assigned(digest: str, bag: str) -> Assigned:
        return Assigned(n=0, thread="t", at=1, step=1, file="f", line=1, name="x", digest=digest, bag=bag)

    assert Differing(assigned("list:1", "3:a"), assigned("list:2", "3:a")).reordered
    assert not Differing(assigned("list:1", "3:a"), assigned("list:2", "3:b")).reordered
    assert not Differing(assigned("int:1", ""), assigned("int:2", "")).reordered
    assert not Differing(assigned("list:1", "3:a"), None).reordered


def test_other_kinds_are_skipped_and_a_torn_line_ends_the_file(tmp_path: Path) -> None:
    file = tmp_path / "7.0.ops"
    lines = [json.dumps(line) for line in Run().ran([A, B]).ran([A], 2).stream.lines]
    file.write_text("\n".join(['{"k":"op","n":1}', *lines[:3], lines[3][:-5]]))
    assert [type(line).__name__ for line in watched(file)] == ["LineSequence", "Ran", "LineSequence"]


@pytest.mark.parametrize(
    "line",
    [
        {"k": "path", "thread": "MainThread", "id": 7, "lines": []},
        {"k": "path", "thread": "MainThread", "id": 7, "lines": [["a.py", []]]},
        {"k": "line", "thread": "MainThread", "step": 1, "paths": [[0, 0]]},
        {"k": "line", "thread": "MainThread", "step": 1, "paths": [[0, -1]]},
        {"k": "line", "thread": "MainThread", "step": 1, "paths": [], "more": [0, "d"]},
    ],
)
def test_what_the_recorder_never_writes_is_left_out(line: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "7.0.ops"
    lines = [json.dumps(one) for one in Run().ran([A, B]).stream.lines]
    file.write_text("\n".join([*lines, json.dumps(line), '{"k":"bye","more":' + "[" * 100_000]))
    assert [type(one).__name__ for one in watched(file)] == ["LineSequence", "Ran"]


def test_an_unknown_sequence_ends_the_log() -> None:
    a, b = Run().ran([A, B]), Run().ran([A, B])
    stray = [Ran("MainThread", 1, ((99, 1),)), *a.ran([C], 2).lines()]
    assert fork(stray, b.ran([A], 2).lines()) is None


def test_only_what_waits_is_kept() -> None:
    a, b = Run(), Run()
    for step in range(1, 200):
        a.ran([A, B], step, values={2: f"{step}"})
        b.ran([A, B], step, values={2: f"{step}"})
    for pair, over in lines.together(a.lines(), b.lines()):
        list(pair.values(over))
        assert len(pair.a.assigned) <= 2
