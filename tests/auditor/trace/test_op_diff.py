"""The first operation that differs: told apart by what went in, what came out, and who had written to the memory."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.trace import op_diff, op_memory
from detaudit.auditor.trace.op_diff import Finding, Kind, first_difference
from detaudit.auditor.trace.op_records import OpLine

Tensor = tuple[str, int]


def op(
    name: str, ins: Sequence[Tensor] = (), outs: Sequence[tuple[str, int] | tuple[str, int, bool]] = (), **fields: Any
) -> OpLine:
    whole = tuple((out[0], out[1], out[2] if len(out) > 2 else True) for out in outs)
    values: dict[str, Any] = {"n": 0, "thread": "MainThread", "step": 1, "file": "train.py", "line": 1, **fields}
    return OpLine(op=f"aten.{name}", ins=tuple(ins), outs=whole, **values)


def found(a: Sequence[OpLine], b: Sequence[OpLine]) -> Finding:
    finding = first_difference(a, b)
    assert finding is not None
    return finding


READ = op("sum", [("y", 1)], [("total", 2)], line=9)
READ_B = op("sum", [("z", 1)], [("other", 2)], line=9)


def test_runs_that_did_the_same_have_no_difference() -> None:
    stream = [op("mul", [("x", 0)], [("y", 1)]), READ]
    assert first_difference(stream, stream) is None


def test_inputs_that_are_equal_and_an_output_that_differs() -> None:
    a = [op("index_put", [("x", 0)], [("y", 1)], line=4), READ]
    b = [op("index_put", [("x", 0)], [("z", 1)], line=4), READ_B]
    finding = found(a, b)
    assert (finding.kind, finding.op.line, finding.nth) == (Kind.OUTPUT, 4, 0)


def test_what_follows_from_a_difference_is_not_the_first() -> None:
    a = [op("one", [("x", 0)], [("x", 0)]), op("two", [("x", 0)], [("y", 1)], line=4), READ]
    b = [op("one", [("x", 0)], [("x", 0)]), op("two", [("x", 0)], [("z", 1)], line=4), READ_B]
    assert found(a, b).op.op == "aten.two"


def test_an_output_that_every_reader_absorbs_does_not_count() -> None:
    workspace = [op("rnn", [("x", 0)], [("h", 1), (words, 2)]) for words in "yz"]
    reader = [op("rnn_backward", [("h", 1), (words, 2)], [("g", 3)]) for words in "yz"]
    assert first_difference([workspace[0], reader[0]], [workspace[1], reader[1]]) is not None  # nobody else to blame
    kernel = [op("put", [("g", 3)], [(words, 4)], line=7) for words in "pq"]
    after = [op("sum", [(words, 4)], [(words * 2, 5)]) for words in "pq"]
    streams = [[workspace[i], reader[i], kernel[i], after[i]] for i in range(2)]
    assert found(streams[0], streams[1]).op.op == "aten.put"


def test_an_output_that_is_overwritten_does_not_count() -> None:
    a = [op("empty_like_of", [], [("y", 1)]), op("zero_", [("", 1)], [("0", 1)])]
    b = [op("empty_like_of", [], [("z", 1)]), op("zero_", [("", 1)], [("0", 1)])]
    assert first_difference(a, b) is None


def test_memory_that_was_never_wholly_written() -> None:
    def run(words: str) -> list[OpLine]:
        return [
            op("empty", [], [("", 1)], uninitialized=True, line=3),
            op("copy_", [("", 1), ("x", 0)], [("x", 1, False)], line=4),
            op("nan_to_num", [(words, 1)], [(words * 2, 2)], line=5),
        ]

    finding = found(run("y"), run("z"))
    assert finding.kind is Kind.FRESH
    assert finding.before is not None
    assert finding.before.line == 3


def test_fresh_memory_that_was_written_is_like_any_other() -> None:
    def run(words: str) -> list[OpLine]:
        return [
            op("empty", [], [("", 1)], uninitialized=True),
            op("fill_", [("", 1)], [("f", 1)], line=4),
            op("sum", [(words, 1)], [(words * 2, 2)], line=5),
        ]

    finding = found(run("y"), run("z"))
    assert finding.kind is Kind.WRITTEN_BETWEEN
    assert finding.before is not None
    assert finding.before.line == 4


def test_numbers_from_a_generator_in_another_state() -> None:
    a = [op("uniform_", [("", 1)], [("y", 1)], random=True, state="s"), READ]
    b = [op("uniform_", [("", 1)], [("z", 1)], random=True, state="t"), READ_B]
    assert found(a, b).kind is Kind.RANDOM


def test_a_generator_in_the_same_state_is_not_to_blame() -> None:
    a = [op("dropout", [("x", 0)], [("y", 1)], random=True, state="s"), READ]
    b = [op("dropout", [("x", 0)], [("z", 1)], random=True, state="s"), READ_B]
    assert found(a, b).kind is Kind.OUTPUT


def test_what_came_in_from_outside() -> None:
    a = [op("lift_fresh.default", [("y", 1)], [("y", 1)], line=2), READ]
    b = [op("lift_fresh.default", [("z", 1)], [("z", 1)], line=2), READ_B]
    finding = found(a, b)
    assert (finding.kind, finding.op.line) == (Kind.OUTSIDE, 2)


def test_the_same_values_in_another_order() -> None:
    def run(*batches: str) -> list[OpLine]:
        entered = ((op("lift_fresh.default", [(x, i)], [(x, i)]), i, x) for i, x in enumerate(batches))
        return [one for made, i, x in entered for one in (made, op("sum", [(x, i)], [(x * 2, i + 9)]))]

    assert found(run("p", "q", "r"), run("q", "p", "r")).kind is Kind.OTHER_TENSOR
    assert found(run("p", "q", "r"), run("s", "p", "r")).kind is Kind.OUTSIDE


def test_another_tensor_that_both_runs_have() -> None:
    weights = [op("uniform_", [("", i)], [(f"w{i}", i)]) for i in range(2)]
    a = [*weights, op("mm", [("w0", 0)], [("y", 5)], line=7)]
    b = [*weights, op("mm", [("w1", 1)], [("z", 5)], line=7)]
    finding = found(a, b)
    assert (finding.kind, finding.op.line) == (Kind.OTHER_TENSOR, 7)


def test_results_of_tasks_that_are_taken_in_another_order_are_no_memory_that_others_write_to() -> None:
    def stream(first: str, second: str) -> list[OpLine]:
        tasks = {name: op("grad", [], [(name, 0)], thread=name) for name in (first, second)}
        sums = [op("add", [(name, 0)], [(f"sum of {number} {name}", 1)], line=7) for number, name in enumerate(tasks)]
        return [tasks[first], sums[0], tasks[second], sums[1]]

    finding = found(stream("g1", "g2"), stream("g2", "g1"))
    assert (finding.kind, finding.op.op, finding.op.line) == (Kind.OTHER_TENSOR, "aten.add", 7)


def test_threads_that_add_to_one_memory_write_to_it_in_another_order() -> None:
    def stream(first: str, second: str) -> list[OpLine]:
        made = [op("grad", [], [(name, number)], thread=name) for number, name in enumerate((first, second))]
        added = op("add_", [(first, 0)], [(f"{first} and more", 0)], thread="t", line=7)
        return [made[0], added, made[1]]

    finding = found(stream("g1", "g2"), stream("g2", "g1"))
    assert (finding.kind, finding.op.line) == (Kind.WRITTEN_BETWEEN, 7)


def test_memory_that_another_process_writes_to_names_the_line_that_writes_it_here() -> None:
    def run(words: str) -> list[OpLine]:
        return [
            op("mm", [(words, 1)], [(words * 2, 2)], shared=(1,), line=5),
            op("sub_", [(words, 1)], [(words * 3, 1)], shared=(1,), line=8),
        ]

    finding = found(run("y"), run("z"))
    assert finding.kind is Kind.WRITTEN_BETWEEN
    assert finding.before is not None
    assert finding.before.line == 8


def test_shared_memory_that_changes_while_an_operation_reads_it_is_no_kernel() -> None:
    def run(words: str) -> list[OpLine]:
        return [
            op("mm", [("x", 0), ("w", 1)], [(words, 2)], shared=(1,), line=5),
            op("sum", [(words, 2)], [(words * 2, 3)], line=6),
            op("sub_", [("w", 1)], [("v", 1)], shared=(1,), line=8),
        ]

    finding = found(run("y"), run("z"))
    assert (finding.kind, finding.place) == (Kind.WRITTEN_BETWEEN, 1)
    assert finding.before is not None
    assert finding.before.line == 8


def test_programs_that_went_different_ways() -> None:
    common = [op("one", line=1), op("two", line=2)]
    a = [*common, *(op("load", line=4) for _ in range(5))]
    b = [*common, *(op("randn", line=6) for _ in range(5))]
    finding = found(a, b)
    assert finding.kind is Kind.FORK
    assert finding.before is not None
    assert (finding.before.line, finding.a and finding.a.line, finding.b and finding.b.line) == (2, 4, 6)


def test_a_stream_that_was_cut_off_is_no_other_way() -> None:
    stream = [op("one"), op("two"), op("three")]
    assert first_difference(stream, stream[:2]) is None


def test_operations_in_no_order_are_matched_by_their_keys() -> None:
    a = [op("p", [], [("1", -1)], key="p"), op("q", [("x", -1)], [("y", -1)], key="q")]
    b = [op("q", [("x", -1)], [("z", -1)], key="q"), op("p", [], [("1", -1)], key="p")]
    finding = found(a, b)
    assert (finding.kind, finding.op.key) == (Kind.OUTPUT, "q")


def test_a_consequence_that_is_told_before_its_cause_is_not_taken_for_it() -> None:
    def run(words: str) -> list[OpLine]:
        return [
            op("user", [(f"f[2]:{words}", -1)], [(f"f[2]:{words}{words}", -1)], key="b"),
            op("maker", [("f[2]:x", -1)], [(f"f[2]:{words}", -1)], key="a"),
        ]

    assert found(run("y"), run("z")).op.key == "a"


NAMES = st.lists(st.sampled_from("abcd"), min_size=4, max_size=40)


@given(NAMES, st.integers(0, 39), st.lists(st.sampled_from("xy"), max_size=5))
def test_inserted_operations_are_aligned_and_what_differs_after_them_is_found(
    names: list[str], where: int, inserted: list[str]
) -> None:
    where %= len(names)
    stream = [op(name, line=place) for place, name in enumerate(names)]
    extra = [op(name, line=99) for name in inserted]
    tail = [op("put", [("x", 1)], [(words, 2)], line=50) for words in "yz"]
    after = [[op("sum", [(words, 2)], [(words * 2, 3)], line=51 + i) for i in range(4)] for words in "yz"]
    finding = found([*stream, tail[0], *after[0]], [*stream[:where], *extra, *stream[where:], tail[1], *after[1]])
    assert (finding.kind, finding.op.line) == (Kind.OUTPUT, 50)
    assert (finding.forked is not None) == bool(inserted)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=30),
    st.integers(0, 29),
    st.randoms(),
)
def test_threads_that_interleave_in_another_way_are_no_difference_and_hide_none(
    steps: list[tuple[str, int]], culprit: int, random: Any
) -> None:
    culprit %= len(steps)

    def run(words: str) -> dict[int, list[OpLine]]:
        threads: dict[int, list[OpLine]] = {}
        for place, (name, thread) in enumerate(steps):
            out = words if place == culprit else "same"
            threads.setdefault(thread, []).append(
                op(name, [("x", -1)], [(out, -1)], thread=f"T{thread}", line=place, n=place)
            )
        return threads

    def interleaved(threads: dict[int, list[OpLine]]) -> list[OpLine]:
        left = {thread: list(ops) for thread, ops in threads.items()}
        mixed = []
        while any(left.values()):
            mixed.append(left[random.choice([thread for thread, ops in left.items() if ops])].pop(0))
        return mixed

    assert first_difference(interleaved(run("y")), interleaved(run("y"))) is None
    assert found(interleaved(run("y")), interleaved(run("z"))).op.line == culprit


def test_what_is_remembered_is_bounded_however_long_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_memory, "MOST_KEPT", 100)
    monkeypatch.setattr(op_diff, "MOST_KEPT", 100)

    def stream(run: str) -> Iterator[OpLine]:
        for number in range(2000):
            words = run if number >= 500 else ""
            yield op("mul", [("x", 0)], [(f"{number}{words}", number + 1, number % 2 == 0)])

    comparison = op_diff._Comparison()
    for a, b in zip(stream("a"), stream("b"), strict=True):
        comparison.arrived(0, a)
        comparison.arrived(1, b)
    for side in comparison._sides:
        assert max(len(side.writers), len(side.fresh), len(side.seen)) <= 100
    assert len(comparison._tainted) <= 100
    assert len(comparison._candidates) <= op_diff._MOST_CANDIDATES
    assert [len(thread.waiting[0]) for thread in comparison._threads.values()] == [0]
    answer = comparison.answer()
    assert answer is not None
    assert answer.nth == 500
