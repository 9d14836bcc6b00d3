"""The inputs and losses of a step, however many gradients no step follows."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from detaudit.recorder.training import steps
from detaudit.recorder.training.digest import FrameworkReader
from detaudit.recorder.training.steps import CurrentStep


class Reader(FrameworkReader):
    def part(self, name: str, tensor: Any) -> tuple[str, str, tuple[int, ...], int]:
        return name, "i8", (), int(tensor)

    def scalar(self, tensor: Any) -> float:
        return float(tensor)


def collected(values: Sequence[int]) -> tuple[Any, Any, Any]:
    step = CurrentStep(Reader())
    for value in values:
        step.add_inputs([("0", "i8", (), value)])
        step.add_loss(value)
    return step.take()


def test_a_few_are_kept_as_they_are() -> None:
    inputs, losses, last = collected([1, 2, 3])
    assert [part[3] for part in inputs] == [part[3] for part in losses] == [1, 2, 3]
    assert (last.value, last.dtype) == (3.0, "i8")


def test_any_number_takes_little_room() -> None:
    step = CurrentStep(Reader())
    for value in range(10_000):
        step.add_inputs([("0", "i8", (), value)])
        step.add_loss(value)
        assert len(step._losses) + len(step._folded) + len(step._inputs) <= 3 * steps._MOST
    inputs, losses, last = step.take()
    assert last.value == 9_999
    assert step.take()[:2] == ([], [])
    assert step.take()[2].as_record() == {"loss": None, "loss_dtype": None}
    assert inputs
    assert losses


@given(st.lists(st.integers(0, 99), min_size=700, max_size=701), st.integers(0, 699))
def test_each_of_them_counts(values: list[int], place: int) -> None:
    other = [*values[:place], values[place] + 1, *values[place + 1 :]]
    assert collected(values)[:2] == collected(list(values))[:2]
    ours, theirs = collected(values), collected(other)
    assert ours[0] != theirs[0]
    assert ours[1] != theirs[1]


def test_inputs_after_the_last_loss_belong_to_the_next_step() -> None:
    step = CurrentStep(Reader())
    step.add_inputs([("0", "i8", (), 1)])
    step.add_loss(1)
    step.add_inputs([("0", "i8", (), 2)])
    assert [part[3] for part in step.take()[0]] == [1]
    assert [part[3] for part in step.take()[0]] == [2]


def test_a_loss_that_was_converted_has_the_type_that_it_had() -> None:
    step = CurrentStep(Reader())
    for dtype, expected in (("float32", "float32"), (None, "i8"), ("", None)):
        step.add_loss(1, dtype)
        assert step.take()[2].as_record() == {"loss": (1.0).hex(), "loss_dtype": expected}
    other = CurrentStep(Reader())
    other.add_loss(1, "float16")
    step.take_over(other)
    assert step.take()[2].dtype == "float16"


@given(st.permutations([(n, (n * 7) % 5) for n in range(8)]), st.integers(0, 8))
def test_what_threads_contribute_is_the_same_in_any_order(work: list[tuple[int, int]], place: int) -> None:
    def of(order: Sequence[tuple[int, int]]) -> tuple[Any, Any, Any]:
        step = CurrentStep(Reader())
        for value, loss in order:
            other = CurrentStep(Reader())
            other.add_inputs([("0", "i8", (), value)])
            step.take_over(other)
            step.add_loss(loss)
        begun = CurrentStep(Reader())
        begun.add_inputs([("0", "i8", (), 99)])
        step.take_over(begun)
        assert [part[3] for part in step._inputs[-1:]] == [99]
        inputs, losses, last = step.take()
        assert [part[3] for part in step.take()[0]] == [99]  # its loss is still to come
        return inputs, losses, last.value

    assert of(work) == of(sorted(work))
    assert of(work) != of([*work[:place], (9, 9), *work[place:]])
