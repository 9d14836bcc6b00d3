"""The first operation that differs: how it differs follows from its inputs, its outputs, and who wrote the memory."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit import wire
from detaudit.model import How
from detaudit.trace import align, operations
from detaudit.trace.align import OpFinding, first_differing_operation
from detaudit.trace.operations import OpLine

Tensor = tuple[str, int]


def op(
    name: str, ins: Sequence[Tensor] = (), outs: Sequence[tuple[str, int] | tuple[str, int, bool]] = (), **fields: Any
) -> OpLine:
    whole = tuple((out[0], out[1], out[2] if len(out) > 2 else True) for out in outs)
    values: dict[str, Any] = {"n": 0, "thread": "MainThread", "step": 1, "file": "train.py", "line": 1, **fields}
    return OpLine(op=f"aten.{name}", ins=tuple(ins), outs=whole, **values)


def found(a: Sequence[OpLine], b: Sequence[OpLine]) -> OpFinding:
    finding = first_differing_operation(a, b)
    assert finding is not None
    return finding


READ = op("sum", [("y", 1)], [("total", 2)], line=9)
READ_B = op("sum", [("z", 1)], [("other", 2)], line=9)


def test_runs_that_did_the_same_have_no_difference() -> None:
    stream = [op("mul", [("x", 0)], [("y", 1)]), READ]
    assert first_differing_operation(stream, stream) is None


def test_identical_inputs_and_an_output_that_differs() -> None:
    a = [op("index_put", [("x", 0)], [("y", 1)], line=4), READ]
    b = [op("index_put", [("x", 0)], [("z", 1)], line=4), READ_B]
    finding = found(a, b)
    assert (finding.how, finding.op.line, finding.nth) == (How.OUTPUT, 4, 0)


def test_what_follows_from_a_difference_is_not_the_first() -> None:
    a = [op("one", [("x", 0)], [("x", 0)]), op("two", [("x", 0)], [("y", 1)], line=4), READ]
    b = [op("one", [("x", 0)], [("x", 0)]), op("two", [("x", 0)], [("z", 1)], line=4), READ_B]
    assert found(a, b).op.op == "aten.two"


def test_an_output_that_every_reader_absorbs_does_not_count() -> None:
    workspace = [op("rnn", [("x", 0)], [("h", 1), (digest, 2)]) for digest in "yz"]
    reader = [op("rnn_backward", [("h", 1), (digest, 2)], [("g", 3)]) for digest in "yz"]
    assert (
        first_differing_operation([workspace[0], reader[0]], [workspace[1], reader[1]]) is not None
    )  # nothing else differs
    kernel = [op("put", [("g", 3)], [(digest, 4)], line=7) for digest in "pq"]
    after = [op("sum", [(digest, 4)], [(digest * 2, 5)]) for digest in "pq"]
    streams = [[workspace[i], reader[i], kernel[i], after[i]] for i in range(2)]
    assert found(streams[0], streams[1]).op.op == "aten.put"


def test_an_output_that_is_overwritten_does_not_count() -> None:
    a = [op("empty_like_of", [], [("y", 1)]), op("zero_", [("", 1)], [("0", 1)])]
    b = [op("empty_like_of", [], [("z", 1)]), op("zero_", [("", 1)], [("0", 1)])]
    assert first_differing_operation(a, b) is None


def test_memory_that_was_never_completely_written() -> None:
    def run(digest: str) -> list[OpLine]:
        return [
            op("empty", [], [("", 1)], uninitialized=True, line=3),
            op("copy_", [("", 1), ("x", 0)], [("x", 1, False)], line=4),
            op("nan_to_num", [(digest, 1)], [(digest * 2, 2)], line=5),
        ]

    finding = found(run("y"), run("z"))
    assert finding.how is How.UNINITIALIZED
    assert finding.before is not None
    assert finding.before.line == 3


def test_new_memory_of_another_size_is_the_argument_that_differs() -> None:
    def run(size: str, digest: str) -> list[OpLine]:
        return [
            op("empty", [], [("", 1)], uninitialized=True, scalars={"1[0]": size}, line=3),
            op("uniform_", [("", 1)], [(digest, 1)], random=True, state="s", line=4),
            op("sum", [(digest, 1)], [(digest * 2, 2)], line=5),
        ]

    finding = found(run("16", "y"), run("32", "z"))
    assert (finding.how, finding.argument, finding.op.line) == (How.ARGUMENT, "1[0]", 3)
    assert first_differing_operation(run("16", "y"), run("32", "y")) is None, "a workspace that is never read"


def test_a_view_of_another_size_is_no_concurrent_write() -> None:
    def run(view: str, digest: str) -> list[OpLine]:
        return [
            op("randperm", [], [("int64[9]:p", 1)], line=3),
            op("index", [("float32[9]:x", 0), (view, 1)], [(digest, 2)], line=4),
            op("sum", [(digest, 2)], [(digest * 2, 3)], line=5),
        ]

    assert found(run("int64[4]:a", "y"), run("int64[6]:b", "z")).how is How.INPUT
    assert found(run("int64[4]:a", "y"), run("int64[4]:b", "z")).how is How.CONCURRENT_WRITE


def test_uninitialized_memory_that_was_written_is_ordinary_memory() -> None:
    def run(digest: str) -> list[OpLine]:
        return [
            op("empty", [], [("", 1)], uninitialized=True),
            op("fill_", [("", 1)], [("f", 1)], line=4),
            op("sum", [(digest, 1)], [(digest * 2, 2)], line=5),
        ]

    finding = found(run("y"), run("z"))
    assert finding.how is How.CONCURRENT_WRITE
    assert finding.before is not None
    assert finding.before.line == 4


def test_numbers_from_a_generator_in_a_different_state() -> None:
    a = [op("uniform_", [("", 1)], [("y", 1)], random=True, state="s"), READ]
    b = [op("uniform_", [("", 1)], [("z", 1)], random=True, state="t"), READ_B]
    assert found(a, b).how is How.RNG_STATE


def test_a_generator_in_the_same_state_is_not_the_culprit() -> None:
    a = [op("dropout", [("x", 0)], [("y", 1)], random=True, state="s"), READ]
    b = [op("dropout", [("x", 0)], [("z", 1)], random=True, state="s"), READ_B]
    assert found(a, b).how is How.OUTPUT


def test_what_came_in_from_outside() -> None:
    a = [op("lift_fresh.default", [("y", 1)], [("y", 1)], line=2), READ]
    b = [op("lift_fresh.default", [("z", 1)], [("z", 1)], line=2), READ_B]
    finding = found(a, b)
    assert (finding.how, finding.op.line) == (How.INPUT, 2)


def test_the_same_values_in_a_different_order() -> None:
    def run(*batches: str) -> list[OpLine]:
        entered = ((op("lift_fresh.default", [(x, i)], [(x, i)]), i, x) for i, x in enumerate(batches))
        return [one for made, i, x in entered for one in (made, op("sum", [(x, i)], [(x * 2, i + 9)]))]

    assert found(run("p", "q", "r"), run("q", "p", "r")).how is How.REORDERED
    assert found(run("p", "q", "r"), run("s", "p", "r")).how is How.INPUT


def test_a_different_tensor_that_both_runs_have() -> None:
    weights = [op("uniform_", [("", i)], [(f"w{i}", i)]) for i in range(2)]
    a = [*weights, op("mm", [("w0", 0)], [("y", 5)], line=7)]
    b = [*weights, op("mm", [("w1", 1)], [("z", 5)], line=7)]
    finding = found(a, b)
    assert (finding.how, finding.op.line) == (How.REORDERED, 7)


def test_results_of_tasks_in_a_different_order_are_no_concurrent_write() -> None:
    def stream(first: str, second: str) -> list[OpLine]:
        tasks = {name: op("grad", [], [(name, 0)], thread=name) for name in (first, second)}
        sums = [op("add", [(name, 0)], [(f"sum of {number} {name}", 1)], line=7) for number, name in enumerate(tasks)]
        return [tasks[first], sums[0], tasks[second], sums[1]]

    finding = found(stream("g1", "g2"), stream("g2", "g1"))
    assert (finding.how, finding.op.op, finding.op.line) == (How.REORDERED, "aten.add", 7)


def test_threads_that_add_to_the_same_memory_write_to_it_in_a_different_order() -> None:
    def stream(first: str, second: str) -> list[OpLine]:
        made = [op("grad", [], [(name, number)], thread=name) for number, name in enumerate((first, second))]
        added = op("add_", [(first, 0)], [(f"{first} and more", 0)], thread="t", line=7)
        return [made[0], added, made[1]]

    finding = found(stream("g1", "g2"), stream("g2", "g1"))
    assert (finding.how, finding.op.line) == (How.CONCURRENT_WRITE, 7)


def test_memory_that_another_process_writes_to_names_the_line_that_writes_it_here() -> None:
    def run(digest: str) -> list[OpLine]:
        return [
            op("mm", [(digest, 1)], [(digest * 2, 2)], shared=(1,), line=5),
            op("sub_", [(digest, 1)], [(digest * 3, 1)], shared=(1,), line=8),
        ]

    finding = found(run("y"), run("z"))
    assert finding.how is How.CONCURRENT_WRITE
    assert finding.before is not None
    assert finding.before.line == 8


def test_shared_memory_that_changes_while_an_operation_reads_it_is_no_kernel() -> None:
    def run(digest: str) -> list[OpLine]:
        return [
            op("mm", [("x", 0), ("w", 1)], [(digest, 2)], shared=(1,), line=5),
            op("sum", [(digest, 2)], [(digest * 2, 3)], line=6),
            op("sub_", [("w", 1)], [("v", 1)], shared=(1,), line=8),
        ]

    finding = found(run("y"), run("z"))
    assert (finding.how, finding.index) == (How.CONCURRENT_WRITE, 1)
    assert finding.before is not None
    assert finding.before.line == 8


def test_runs_that_took_different_code_paths() -> None:
    common = [op("one", line=1), op("two", line=2)]
    a = [*common, *(op("load", line=4) for _ in range(5))]
    b = [*common, *(op("randn", line=6) for _ in range(5))]
    finding = found(a, b)
    assert finding.how is How.CONTROL_FLOW
    assert finding.before is not None
    assert (finding.before.line, finding.a and finding.a.line, finding.b and finding.b.line) == (2, 4, 6)


def test_a_stream_that_was_cut_off_took_no_different_path() -> None:
    stream = [op("one"), op("two"), op("three")]
    assert first_differing_operation(stream, stream[:2]) is None


def test_operations_in_no_order_are_matched_by_their_keys() -> None:
    a = [op("p", [], [("1", -1)], key="p"), op("q", [("x", -1)], [("y", -1)], key="q")]
    b = [op("q", [("x", -1)], [("z", -1)], key="q"), op("p", [], [("1", -1)], key="p")]
    finding = found(a, b)
    assert (finding.how, finding.op.key) == (How.OUTPUT, "q")


def test_a_consequence_that_is_recorded_before_its_cause_is_not_taken_for_it() -> None:
    def run(digest: str) -> list[OpLine]:
        return [
            op("user", [(f"f[2]:{digest}", -1)], [(f"f[2]:{digest}{digest}", -1)], key="b"),
            op("maker", [("f[2]:x", -1)], [(f"f[2]:{digest}", -1)], key="a"),
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
    tail = [op("put", [("x", 1)], [(digest, 2)], line=50) for digest in "yz"]
    after = [[op("sum", [(digest, 2)], [(digest * 2, 3)], line=51 + i) for i in range(4)] for digest in "yz"]
    finding = found([*stream, tail[0], *after[0]], [*stream[:where], *extra, *stream[where:], tail[1], *after[1]])
    assert (finding.how, finding.op.line) == (How.OUTPUT, 50)
    assert (finding.forked is not None) == (finding.nth is None) == bool(inserted)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=30),
    st.integers(0, 29),
    st.randoms(),
)
def test_threads_that_interleave_differently_are_no_difference_and_hide_none(
    steps: list[tuple[str, int]], culprit: int, random: Any
) -> None:
    culprit %= len(steps)

    def run(digest: str) -> dict[int, list[OpLine]]:
        threads: dict[int, list[OpLine]] = {}
        for place, (name, thread) in enumerate(steps):
            out = digest if place == culprit else "same"
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

    assert first_differing_operation(interleaved(run("y")), interleaved(run("y"))) is None
    assert found(interleaved(run("y")), interleaved(run("z"))).op.line == culprit


def test_what_is_kept_is_bounded_however_long_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MOST_KEPT", 100)
    monkeypatch.setattr(align, "MOST_KEPT", 100)

    def stream(run: str) -> Iterator[OpLine]:
        for number in range(2000):
            digest = run if number >= 500 else ""
            yield op("mul", [("x", 0)], [(f"{number}{digest}", number + 1, number % 2 == 0)])

    comparison = align._Comparison()
    for a, b in zip(stream("a"), stream("b"), strict=True):
        comparison.arrived(0, a)
        comparison.arrived(1, b)
    for side in comparison._sides:
        assert max(len(side.writers), len(side.uninitialized), len(side.seen)) <= 100
    assert len(comparison._tainted) <= 100
    assert len(comparison._candidates) <= align._MOST_CANDIDATES
    assert [len(thread.waiting[0]) for thread in comparison._threads.values()] == [0]
    answer = comparison.answer()
    assert answer is not None
    assert answer.nth == 500


def scaled(number: str, digest: str, **fields: Any) -> OpLine:
    return op("mul", [("x", 0)], [(digest, 1)], line=4, scalars={"2": number}, **fields)


def test_a_number_that_differs_is_an_input() -> None:
    finding = found([scaled("0.31", "y"), READ], [scaled("0.72", "z"), READ_B])
    assert (finding.how, finding.op.line, finding.argument) == (How.ARGUMENT, 4, "2")
    assert found([scaled("0.31", "y"), READ], [scaled("0.31", "z"), READ_B]).how is How.OUTPUT


def test_a_number_whose_effect_is_absorbed_does_not_count() -> None:
    assert first_differing_operation([scaled("0.31", "y"), READ], [scaled("0.72", "y"), READ]) is None


def test_a_number_in_a_tensor_that_enters_is_named() -> None:
    a = [op("lift_fresh.default", [("p", 0)], [("y", 1)], scalars={"1": "0.31"}), READ]
    b = [op("lift_fresh.default", [("q", 0)], [("z", 1)], scalars={"1": "0.72"}), READ_B]
    assert (found(a, b).how, found(a, b).argument) == (How.ARGUMENT, "1")


def test_a_tensor_that_differs_comes_before_a_number() -> None:
    a = [op("mul", [("x", 0)], [("y", 1)], scalars={"2": "0.31"}), READ]
    b = [op("mul", [("w", 0)], [("z", 1)], scalars={"2": "0.72"}), READ_B]
    assert found(a, b).how is How.INPUT


def test_a_part_of_a_tensor_that_is_taken_elsewhere_is_no_concurrent_write() -> None:
    made = op("rand", outs=[("m", 0)], line=1)

    def run(start: str, part: str, result: str) -> list[OpLine]:
        scalars = {f"{wire.START}1": start}
        return [made, op("mul", [(part, 0)], [(result, 1)], line=4, scalars=scalars), op("sum", [(result, 1)], line=5)]

    finding = found(run("64", "p", "y"), run("128", "q", "z"))
    assert (finding.how, finding.argument, finding.op.line) == (How.ARGUMENT, f"{wire.START}1", 4)
    assert found(run("64", "p", "y"), run("64", "q", "z")).how is How.CONCURRENT_WRITE
    both = [[*run("64", "p", "y"), *run("128", "q", "z")], [*run("128", "q", "z"), *run("64", "p", "y")]]
    assert found(*both).how is How.REORDERED


def test_a_generator_in_a_different_state_comes_before_a_number() -> None:
    drawn = [op("normal_", outs=[(one, 1)], random=True, state=one, scalars={"3": one}) for one in "yz"]
    assert found([drawn[0], READ], [drawn[1], READ_B]).how is How.RNG_STATE
    drawn = [op("normal_", outs=[(one, 1)], random=True, state="s", scalars={"3": one}) for one in "yz"]
    assert found([drawn[0], READ], [drawn[1], READ_B]).how is How.ARGUMENT


def test_a_constant_of_a_graph_is_found_although_its_operations_run_in_no_order() -> None:
    a = [op("Mul", [("c", -1), ("x", -1)], [("y", -1)], key="1/f/Mul/0", scalars={"1": "0.31"})]
    b = [op("Mul", [("d", -1), ("x", -1)], [("z", -1)], key="1/f/Mul/0", scalars={"1": "0.72"})]
    assert (found(a, b).how, found(a, b).argument) == (How.ARGUMENT, "1")


def test_a_number_that_python_read_from_a_difference_is_its_consequence() -> None:
    def run(digest: str) -> list[OpLine]:
        race = op("index_put", [("x", 0)], [(digest, 5)], line=2)
        item = op("_local_scalar_dense", [(digest, 5)], line=3)
        return [race, item, scaled(digest, f"{digest}y"), op("sum", [(f"{digest}y", 1)], [(f"{digest}total", 2)])]

    finding = found(run("p"), run("q"))
    assert (finding.how, finding.op.line) == (How.OUTPUT, 2)


def streams(*made: tuple[OpLine, OpLine]) -> tuple[list[OpLine], list[OpLine]]:
    return [a for a, _ in made], [b for _, b in made]


def both(made: OpLine) -> tuple[OpLine, OpLine]:
    return made, made


def reads(a: Tensor, b: Tensor, **fields: Any) -> tuple[OpLine, OpLine]:
    """An operation that reads something different in either run, as its second input."""
    first, second = (op("mul", [("x", 7), one], [(f"of {one[0]}", 8)], line=5, **fields) for one in (a, b))
    return first, second


def test_an_input_without_a_writer_differs() -> None:
    a, b = reads(("p", 1), ("q", 1))
    finding = found(*streams(both(op("one")), (a, b)))
    assert finding == OpFinding(How.INPUT, a, b, index=1, nth=1)
    entered = [op("lift_fresh", [("x", 7), (one, 1)], [(one * 2, 2)]) for one in "pq"]
    written = op("fill_", [("", 1)], [("w", 1)])
    finding = found(*streams(both(written), (entered[0], entered[1])))
    assert finding == OpFinding(How.INPUT, entered[0], entered[1], index=1, nth=1)


@pytest.mark.parametrize(
    ("elsewhere", "how"),
    [
        (("p", "q"), How.REORDERED),
        (("p", ""), How.CONCURRENT_WRITE),
        (("", "q"), How.CONCURRENT_WRITE),
        (("", ""), How.CONCURRENT_WRITE),
    ],
)
def test_a_tensor_was_taken_for_another_one_if_each_run_has_both(elsewhere: tuple[str, str], how: How) -> None:
    """``p`` is read by the first run and was seen by the second, ``q`` the other way round."""
    writer = op("fill_", [("", 1)], [("w", 1)], line=3)
    # The operation that reads gives the same, so only what it saw counts.
    seen = [op("all", [(one or "x", 5)], [("1", 6)]) for one in reversed(elsewhere)]
    a, b = reads(("p", 1), ("q", 1))
    finding = found(*streams(both(writer), (seen[0], seen[1]), (a, b)))
    assert finding == OpFinding(how, a, b, index=1, nth=2, before=writer)


@pytest.mark.parametrize("run", [0, 1])
def test_memory_that_is_uninitialized_in_one_run_only(run: int) -> None:
    taken = op("empty", [], [("", 1)], uninitialized=True, line=3)
    made = [op("empty", [], [("", 1)], line=3), taken]
    a, b = reads(("p", 1), ("q", 1))
    finding = found(*streams((made[run], made[1 - run]), (a, b)))
    assert finding == OpFinding(How.UNINITIALIZED, a, b, index=1, nth=1, before=taken)


def test_what_was_read_of_memory_that_is_not_recorded_is_no_reordering() -> None:
    writer = op("fill_", [("", 1)], [("w", 1)], line=3)
    seen = op("all", [("p", 5), ("q", 6), ("", 9)], [("1", 6)])
    for values in (("", "q"), ("p", "")):
        a, b = reads((values[0], 1), (values[1], 1))
        finding = found(*streams(both(writer), both(seen), (a, b)))
        assert finding == OpFinding(How.CONCURRENT_WRITE, a, b, index=1, nth=2, before=writer)


def test_what_entered_is_known_by_its_output_if_no_input_was_recorded() -> None:
    def entered(*batches: str, ins: Sequence[Tensor] = ()) -> list[OpLine]:
        return [
            one
            for i, x in enumerate(batches)
            for one in (op("lift_fresh", ins, [("same", 20), (x, i)]), op("sum", [(x, i)], [(x * 2, i + 9)]))
        ]

    for ins in ((), [("", 30)], [("", 30), ("", 31)], [("", 30), ("", 31), ("same", 32)]):
        reordered = found(entered("p", "q", "r", ins=ins), entered("q", "p", "r", ins=ins))
        assert (reordered.how, reordered.index, reordered.nth) == (How.REORDERED, 1, 0)
        assert found(entered("p", "q", "r", ins=ins), entered("s", "p", "r", ins=ins)).how is How.INPUT
        assert found(entered("s", "p", "r", ins=ins), entered("p", "q", "r", ins=ins)).how is How.INPUT


def test_the_writer_of_shared_memory_is_that_of_the_first_run() -> None:
    made = [
        [op("mm", [(one, 1)], [(one * 2, 2)], shared=(1,)), op("sub_", [(one, 1)], [(one * 3, 1)], n=n)]
        for n, one in enumerate("yz")
    ]
    assert found(*made) == OpFinding(How.CONCURRENT_WRITE, made[0][0], made[1][0], nth=0, before=made[0][1])


def test_shared_memory_of_one_run_has_no_place_among_the_inputs_of_the_other() -> None:
    a = op("mm", [("x", 0), ("w", 1)], [("y", 2)], line=5)
    b = op("mm", [("x", 0), ("w", 4)], [("z", 2)], shared=(4,), line=5)
    assert found([a], [b]) == OpFinding(How.CONCURRENT_WRITE, a, b, index=0, nth=0)


def test_an_output_is_named_by_its_place() -> None:
    made = [op("sort", [("x", 0)], [("same", 1), (one, 2)], line=4) for one in "yz"]
    after = [op("sum", [(one, 2)], [(one * 2, 3)]) for one in "yz"]
    finding = found([op("one"), made[0], after[0]], [op("one"), made[1], after[1]])
    assert finding == OpFinding(How.OUTPUT, made[0], made[1], index=1, nth=1)
    assert not finding.brought
    assert finding.op is made[0]


def test_what_has_no_inputs_was_brought() -> None:
    made = [op("next", [], [(one, 1)], line=4) for one in "yz"]
    finding = found([made[0], READ], [made[1], READ_B])
    assert (finding.how, finding.brought, finding.nth) == (How.OUTPUT, True, 0)


def test_a_finding_without_an_operation_is_an_error() -> None:
    second = op("two")
    assert OpFinding(How.CONTROL_FLOW, None, second).op is second
    with pytest.raises(ValueError, match=r"^a finding without an operation$"):
        _ = OpFinding(How.CONTROL_FLOW, None, None).op


def test_numbers_from_a_generator_whose_state_is_not_recorded() -> None:
    a, b = (op("uniform_", [("", 1)], [("same", 3), (one, 1)], random=True, line=4) for one in "yz")
    assert found([a, READ], [b, READ_B]) == OpFinding(How.RNG_STATE, a, b, index=1, nth=0)


def test_a_part_with_the_same_contents_that_is_taken_elsewhere_is_not_reordered() -> None:
    a, b = (op("mul", [("x", 0)], [(one, 1)], line=4, scalars={f"{wire.START}1": one}) for one in "yz")
    assert found([a, READ], [b, READ_B]) == OpFinding(How.ARGUMENT, a, b, nth=0, argument=f"{wire.START}1")


def test_the_operations_at_which_the_paths_diverge_are_named() -> None:
    first, common = op("one", line=1), op("two", line=2)
    a = [op("load", line=line) for line in (4, 5, 6)]
    b = [op("randn", line=line) for line in (7, 8, 9)]
    assert found([first, common, *a], [first, common, *b]) == OpFinding(How.CONTROL_FLOW, a[0], b[0], before=common)
    assert found(a, b) == OpFinding(How.CONTROL_FLOW, a[0], b[0])


def test_streams_meet_again_at_the_next_place_that_both_have() -> None:
    same = [op(name) for name in ("c", "d", "e")]
    culprits = [op("put", [("x", 1)], [(digest, 2)], line=9) for digest in "yz"]
    taken = [op("sum", [(digest, 2)], [(digest * 2, 3)], line=10) for digest in "yz"]
    a = [op("p"), *same, culprits[0], taken[0], op("f")]
    b = [op("q"), *same, culprits[1], taken[1], op("f"), op("p"), *same]
    for ours, theirs in ((a, b), (b, a)):
        finding = found(ours, theirs)
        assert (finding.how, finding.op.line, finding.nth) == (How.OUTPUT, 9, None)
        assert finding.forked == OpFinding(How.CONTROL_FLOW, ours[0], theirs[0])


def test_a_part_that_is_written_does_not_absorb_a_difference() -> None:
    put = [op("put", [("x", 0)], [(one, 1)], line=2) for one in "yz"]
    part = op("fill_", [("", 1)], [("p", 1, False)], line=3)
    read = [op("sum", [(one * 2, 1)], [(one * 3, 2)], line=4) for one in "yz"]
    finding = found([put[0], part, read[0]], [put[1], part, read[1]])
    assert finding == OpFinding(How.OUTPUT, put[0], put[1], nth=0)
    whole = op("fill_", [("", 1)], [("p", 1)], line=3)
    finding = found([put[0], whole, read[0]], [put[1], whole, read[1]])
    assert finding == OpFinding(How.CONCURRENT_WRITE, read[0], read[1], nth=2, before=whole)


def test_a_difference_that_something_takes_up_comes_before_an_earlier_one_that_nothing_reads() -> None:
    unread = [op("workspace", [("x", 0)], [(one, 1)], line=2) for one in "yz"]
    put = [op("put", [("x", 0)], [(one, 2)], line=3) for one in "yz"]
    read = [op("sum", [(one, 2)], [(one * 2, 3)], line=4) for one in "yz"]
    assert found([unread[0], put[0], read[0]], [unread[1], put[1], read[1]]).op.line == 3
    assert found([unread[0], put[0]], [unread[1], put[1]]).op.line == 2


def test_an_operation_with_more_outputs_in_one_run() -> None:
    a = op("unique", [("x", 0)], [("y", 1)], line=2)
    b = op("unique", [("x", 0)], [("z", 1), ("more", 2)], line=2)
    assert found([a], [b]) == OpFinding(How.OUTPUT, a, b, nth=0)
    assert found([b], [a]) == OpFinding(How.OUTPUT, b, a, nth=0)


def test_after_the_paths_diverged_only_an_output_is_blamed() -> None:
    same = [op(name) for name in ("c", "d", "e")]
    fork = OpFinding(How.CONTROL_FLOW, op("p"), op("q"))
    a, b = reads(("p", 1), ("q", 1))
    assert found([op("p"), *same, a], [op("q"), *same, b]) == fork
    ends = [op("f"), op("g"), op("h")]
    before = found([a, op("p"), *ends], [b, op("q"), *ends])
    assert before == OpFinding(How.INPUT, a, b, index=1, nth=0)
    unread = [op("put", [("x", 1)], [(digest, 2)], line=9) for digest in "yz"]
    assert found([op("p"), *same, unread[0]], [op("q"), *same, unread[1]]) == fork


def test_streams_that_never_meet_are_given_up_after_a_fixed_number_of_operations() -> None:
    comparison = align._Comparison()

    def step(number: int) -> align._Thread:
        comparison.arrived(0, op("one", line=number))
        comparison.arrived(1, op("two", line=number))
        (thread,) = comparison._threads.values()
        return thread

    assert [step(number).parted for number in range(align.AHEAD)] == [False] * (align.AHEAD - 1) + [True]
    thread = step(align.AHEAD)
    assert (thread.forked, [len(side) for side in thread.waiting]) == (True, [align.AHEAD + 1] * 2)


def test_keys_that_both_runs_reached_are_not_kept() -> None:
    comparison = align._Comparison()
    comparison.arrived(0, op("one", key="a"))
    comparison.arrived(0, op("two", key="b"))
    comparison.arrived(1, op("one", key="a"))
    comparison.arrived(1, op("one", thread="T"))
    comparison.arrived(0, op("one", thread="T"))
    assert list(comparison._threads) == ["b", ("thread", "T")]


def test_the_counts_of_threads_are_their_own() -> None:
    made = [[op("one", thread="S"), op("two", thread="T"), op("put", [], [(one, 1)], thread="T")] for one in "yz"]
    finding = found(*made)
    assert (finding.nth, finding.op.thread) == (1, "T")


def test_a_difference_that_is_no_longer_followed_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "MOST_KEPT", 2)
    made = [[op("put", [], [(f"{one}{n}", n)], line=n) for n in range(5)] for one in "yz"]
    assert found(made[0], made[1]).op.line == 0
    comparison = align._Comparison()
    for pair in zip(*made, strict=True):
        for side, one in enumerate(pair):
            comparison.arrived(side, one)
    assert [one.lost for one in comparison._candidates] == [True, True, True, False, False]
    assert list(comparison._tainted) == [3, 4]


def test_the_causes_of_a_difference_are_limited() -> None:
    puts = [[op("put", [], [(f"{one}{n}", n)], line=n) for n in range(10)] for one in "yz"]
    cats = [op("cat", [(f"{one}{n}", n) for n in range(10)], [(one, 20)]) for one in "yz"]
    comparison = align._Comparison()
    for pair in zip([*puts[0], cats[0]], [*puts[1], cats[1]], strict=True):
        for side, one in enumerate(pair):
            comparison.arrived(side, one)
    assert [len(causes) for causes in comparison._tainted.values()] == [1] * 10 + [8]
    assert all(one.spread for one in comparison._candidates)


def test_candidates_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "_MOST_CANDIDATES", 2)
    comparison = align._Comparison()
    for n in range(4):
        for side, one in enumerate("yz"):
            comparison.arrived(side, op("put", [], [(one, n)]))
    assert len(comparison._candidates) == 2


def test_what_is_not_in_a_storage_is_followed_by_its_content() -> None:
    put = [op("put", [], [(f"f[1]:{one}", -1)], key="a") for one in "yz"]
    read = [op("sum", [(f"g[2]:{one}", -1)], [(f"h:{one * 2}", -1)], key="b") for one in "yz"]
    finding = found([put[0], read[0]], [put[1], read[1]])
    assert (finding.op.key, finding.how) == ("a", How.OUTPUT)
    comparison = align._Comparison()
    for pair in (put, read):
        for side, one in enumerate(pair):
            comparison.arrived(side, one)
    assert [candidate.spread for candidate in comparison._candidates] == [True]


def test_memory_is_followed_from_the_first_storage_on() -> None:
    put = [op("put", [], [(one, 0)], line=2) for one in "yz"]
    read = [op("sum", [(one * 2, 0)], [(one * 3, 2)], line=4) for one in "yz"]
    assert found([put[0], read[0]], [put[1], read[1]]) == OpFinding(How.OUTPUT, put[0], put[1], nth=0)


def test_a_number_is_no_consequence_of_what_an_operation_with_an_output_read() -> None:
    def run(digest: str) -> list[OpLine]:
        race = op("index_put", [("x", 0)], [(digest, 5)], line=2)
        absorbed = op("argmax", [(digest, 5)], [("same", 6)], line=3)
        return [race, absorbed, scaled(digest, f"{digest}y"), op("sum", [(f"{digest}y", 1)], [(f"{digest}total", 2)])]

    finding = found(run("p"), run("q"))
    assert (finding.how, finding.op.line, finding.argument) == (How.ARGUMENT, 4, "2")


def test_what_differs_without_a_number_is_no_consequence_of_what_python_read() -> None:
    def run(digest: str) -> list[OpLine]:
        race = op("index_put", [("x", 0)], [(digest, 5)], line=2)
        item = op("_local_scalar_dense", [(digest, 5)], line=3)
        other = op("index_put", [("x", 0)], [(digest * 2, 1)], line=4)
        return [race, item, other, op("sum", [(digest * 2, 1)], [(digest * 3, 2)], line=5)]

    assert found(run("p"), run("q")).op.line == 4


def test_what_was_brought_in_a_different_order_is_an_output() -> None:
    def run(*batches: str) -> list[OpLine]:
        brought = ((op("next", [], [(x, i)]), op("sum", [(x, i)], [(x * 2, i + 9)])) for i, x in enumerate(batches))
        return [one for pair in brought for one in pair]

    finding = found(run("p", "q", "r"), run("q", "p", "r"))
    assert (finding.how, finding.brought) == (How.OUTPUT, True)


@pytest.mark.parametrize("run", [0, 1])
def test_shared_memory_of_one_run_is_written_to_concurrently(run: int) -> None:
    def stream(first: str, second: str, **shared: Any) -> list[OpLine]:
        tasks = [op("grad", [], [(name, 0)], thread=name) for name in (first, second)]
        sums = [op("add", [(name, 0)], [(f"sum of {n} {name}", 1)], **shared) for n, name in enumerate((first, second))]
        return [tasks[0], sums[0], tasks[1], sums[1]]

    memory: list[dict[str, Any]] = [{"shared": (0,)}, {}]
    finding = found(stream("g1", "g2", **memory[run]), stream("g2", "g1", **memory[1 - run]))
    assert (finding.how, finding.op.op) == (How.CONCURRENT_WRITE, "aten.add")
    assert found(stream("g1", "g2"), stream("g2", "g1")).how is How.REORDERED
