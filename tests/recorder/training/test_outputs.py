"""What models return is a result of its own, or if something is trained, what they return after the last update."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from detaudit.recorder.training import outputs
from detaudit.recorder.training.outputs import values_in
from detaudit.recorder.training.steps import Training
from tests.recorder.training.test_steps import FakeReader, Recorder, Tensor


class CopyingReader(FakeReader):
    """Reads tensors that may change, and counts how many were digested."""

    def __init__(self) -> None:
        self.digested = 0

    def part(self, name: str, tensor: Tensor) -> tuple[str, str, tuple[int, ...], int]:
        self.digested += 1
        return super().part(name, tensor)

    def kept(self, tensor: Tensor, copy: bool) -> Tensor | None:
        return Tensor(tensor.value, tensor.bytes) if copy else None


class Process:
    """A process that calls models and may train."""

    def __init__(self) -> None:
        self.recorder, self.reader = Recorder(), CopyingReader()
        self.training = Training("torch", self.recorder, self.reader)  # type: ignore[arg-type]
        self.training.ends_late = False
        self.model = Tensor(0.0)

    def call(self, *values: Any, data: float = 1.0) -> None:
        self.training.outputs.entered()
        if self.training.outputs.each:
            self.training.outputs.calling(self.model, lambda: [self.model], [Tensor(data)])
        self.training.outputs.returned(values)

    def update(self) -> None:
        self.training.loss(Tensor(1.0))
        self.training.step("weights", [self.model])

    def lines(self, framework: str) -> list[tuple[int, str]]:
        events = [line for line in self.recorder.lines if line["k"] == "row" and line["fw"] == framework]
        return [(event["step"], event["stage"]) for event in events]

    def end(self) -> dict[str, Any]:
        self.training.finish()
        found: dict[str, Any] = [line for line in self.recorder.lines if line["k"] == "final"][-1]
        return found


def calls(values: Iterable[float]) -> dict[str, Any]:
    process = Process()
    for value in values:
        process.call(Tensor(value))
    return process.end()


def after_training(values: Iterable[float], before: Iterable[float] = ()) -> dict[str, Any]:
    process = Process()
    process.update()
    for value in before:
        process.call(Tensor(value))
    process.update()
    for value in values:
        process.call(Tensor(value))
    return process.end()


def test_each_call_is_a_step_if_nothing_is_trained() -> None:
    process = Process()
    process.call(Tensor(1.0))
    process.call(Tensor(2.0))
    end = process.end()
    of_first = [(1, "init"), (1, "rng"), (1, "batch"), (1, "output")]
    assert process.lines("torch inference") == [*of_first, (2, "rng"), (2, "batch"), (2, "output")]
    assert (end["fw"], end["steps"]) == ("torch inference", 2)


def test_the_order_of_calls_counts() -> None:
    assert calls([1.0, 2.0])["digest"] == calls([1.0, 2.0])["digest"] != calls([2.0, 1.0])["digest"]


def test_only_outputs_after_the_last_update_count_if_something_is_trained() -> None:
    many = [3.0] * (outputs.LATER_CALLS + 1)  # so some are digested before the update
    for before in ([3.0], many):
        assert after_training([1.0])["outputs"] == after_training([1.0], before)["outputs"]
        assert after_training([], before)["outputs"] is None
    assert after_training([1.0])["outputs"] != after_training([2.0])["outputs"]


def test_threads_that_train_have_no_outputs_of_their_own() -> None:
    process = Process()
    other = process.training.for_thread()
    process.call(Tensor(1.0))
    other.loss(Tensor(1.0))
    other.step("weights", [process.model])
    assert not process.training.outputs.each
    process.call(Tensor(2.0))
    other.finish()
    process.training.finish(others_trained=True)
    finals = [line for line in process.recorder.lines if line["k"] == "final"]
    assert [(line["fw"], line["outputs"]) for line in finals] == [("torch", None)]
    assert process.recorder.lines[-1]["outputs"] == after_training([2.0])["outputs"]


def test_an_output_that_an_update_follows_is_never_digested() -> None:
    process = Process()
    process.update()
    digested = process.reader.digested
    process.call(Tensor(1.0))
    process.training.loss(Tensor(1.0))
    process.training.outputs.updated()
    assert process.reader.digested == digested


def test_an_output_is_read_as_it_was_returned() -> None:
    process = Process()
    process.update()
    output = Tensor(1.0)
    process.call(output)
    output.value = 2.0
    process.call(Tensor(3.0))
    again = Process()
    again.update()
    again.call(Tensor(1.0))
    again.call(Tensor(3.0))
    assert process.end()["outputs"] == again.end()["outputs"]


@pytest.mark.parametrize("size", [1, outputs.LATER_BYTES // 2, outputs.LATER_BYTES + 1])
def test_a_bounded_number_of_outputs_is_kept(size: int) -> None:
    process = Process()
    process.update()
    digested = process.reader.digested
    number = outputs.LATER_CALLS + 10
    for value in range(number):
        process.call(Tensor(value, size))
    waiting = number - (process.reader.digested - digested)
    assert waiting <= min(outputs.LATER_CALLS, outputs.LATER_BYTES // size)
    small = Process()
    small.update()
    for value in range(number):
        small.call(Tensor(value, 8))
    assert process.end()["outputs"] == small.end()["outputs"]


def in_threads(values: Iterable[float]) -> dict[str, Any]:
    process = Process()
    process.call(Tensor(7.0))
    for value in values:
        thread = threading.Thread(target=process.call, args=(Tensor(value),))
        thread.start()
        thread.join()
    return process.end()


def test_calls_of_threads_have_no_order() -> None:
    assert in_threads([1.0, 2.0]) == in_threads([2.0, 1.0])
    assert in_threads([1.0, 2.0])["steps"] == 2
    assert in_threads([1.0, 2.0])["digest"] != in_threads([1.0, 3.0])["digest"]
    assert in_threads([1.0, 1.0])["digest"] == in_threads([1.0])["digest"]


def beside(process: Process, *tasks: Callable[[], object]) -> None:
    """Do the tasks in one thread, an update of the main thread before each but the first."""
    turns = [threading.Event() for _ in tasks]
    ends = [threading.Event() for _ in tasks]

    def run() -> None:
        for task, turn, end in zip(tasks, turns, ends, strict=True):
            turn.wait()
            task()
            end.set()

    thread = threading.Thread(target=run)
    thread.start()
    for number, (turn, end) in enumerate(zip(turns, ends, strict=True)):
        if number:
            process.update()
        turn.set()
        end.wait()
    thread.join()


def test_a_thread_that_calls_models_while_another_one_trains_does_not_count() -> None:
    def outputs_of(*calls: int) -> Any:
        process = Process()
        process.update()
        watching = [lambda: process.call(Tensor(4.0)) for _ in calls]
        beside(process, *watching)
        process.call(Tensor(1.0))
        return process.end()["outputs"]

    assert outputs_of(1, 1) == outputs_of(1, 1, 1) == after_training([1.0])["outputs"]
    assert outputs_of(1) != after_training([1.0])["outputs"]  # a thread that begins after the last update


def test_a_call_that_an_update_interrupts_does_not_count() -> None:
    process = Process()
    process.update()
    outputs = process.training.outputs
    beside(process, outputs.entered, lambda: outputs.returned([Tensor(4.0)]))
    assert process.end()["outputs"] is None


def test_what_a_thread_returns_after_an_update_of_its_own_counts_whatever_others_do() -> None:
    def outputs_of(last: float, others_last: bool) -> Any:
        process = Process()
        process.update()
        own = process.training.for_thread()

        def trained() -> None:
            own.loss(Tensor(1.0))
            own.step("weights", [process.model])
            process.training.outputs.updated()

        beside(process, trained, lambda: process.call(Tensor(last)))
        if others_last:
            process.update()
        return process.end()["outputs"]

    assert outputs_of(1.0, others_last=True) == outputs_of(1.0, others_last=False) != outputs_of(2.0, others_last=True)


def test_a_call_that_returns_no_values_is_none() -> None:
    process = Process()
    process.call()
    process.training.finish()
    assert process.recorder.lines == []


@dataclass
class Answer:
    logits: Tensor
    cache: object
    score: float


def test_values_in_nested_collections() -> None:
    def tensors(value: Any) -> list[Any] | None:
        return [value] if isinstance(value, Tensor) else None

    a, b = Tensor(1.0), Tensor(2.0)
    assert list(values_in({"a": (a, [b, None]), "n": 3}, tensors)) == [a, b, "int:3"]
    assert list(values_in(Answer(a, object(), 0.5), tensors)) == [a, "float:0.5"]
    assert list(values_in((1, 1.0, True, "text"), tensors)) == ["int:1", "float:1.0", "bool:True", "str:'text'"]
    itself: list[Any] = [a]
    itself.append(itself)
    assert len(list(values_in(itself, tensors))) < 10


def test_a_call_that_is_repeated_counts_once() -> None:
    once, often, other = Process(), Process(), Process()
    once.call(Tensor(1.0), data=1.0)
    once.call(Tensor(2.0), data=2.0)
    for _ in range(3):
        often.call(Tensor(1.0), data=1.0)
        often.call(Tensor(2.0), data=2.0)
    other.call(Tensor(1.0), data=1.0)
    other.call(Tensor(2.0), data=2.0)
    other.call(Tensor(3.0), data=2.0)
    ends = [process.end() for process in (once, often, other)]
    assert [end["steps"] for end in ends] == [2, 2, 3]
    assert ends[0]["digest"] == ends[1]["digest"] != ends[2]["digest"]
