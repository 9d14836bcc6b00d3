"""Steps are written with their weights, which are held, released and digested at the right times, tested with fakes."""

import contextlib
import gc
import json
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from detaudit import wire
from detaudit.recorder.training import weights
from detaudit.recorder.training.digest import FrameworkReader
from detaudit.recorder.training.steps import Training
from tests.logs import as_lines


class Tensor:
    """A weight: a value, and a size in bytes."""

    def __init__(self, value: float, size: int = 8) -> None:
        self.value, self.bytes = value, size


class FakeReader(FrameworkReader):
    def part(self, name: str, tensor: Tensor) -> tuple[str, str, tuple[int, ...], int]:
        return name, "f8", (1,), hash(tensor.value) & 0xFFFF

    def total(self, tensor: Tensor) -> float:
        return tensor.value

    def size(self, tensor: Tensor) -> int:
        return tensor.bytes

    def device(self, tensor: Tensor) -> str:
        return "cpu"

    def scalar(self, tensor: Tensor) -> float | None:
        return tensor.value


class Owner:
    pass


class Recorder:
    stages = frozenset(wire.STAGES)
    until = 0

    def __init__(self) -> None:
        self.sink = self
        self.trainings: list[Training] = []
        self.lane = 0
        self.lines: list[dict[str, Any]] = []

    def stepped(self, steps: int) -> None:
        pass

    def called(self, calls: int) -> None:
        pass

    def new_lane(self) -> int:
        return len(self.trainings)

    def write_rows(self, framework: str, rows: Iterable[Any], text: str = "") -> None:
        self.lines += as_lines(framework, rows)
        self.lines += [json.loads(line) for line in text.splitlines()]

    def write(self, *lines: dict[str, Any]) -> None:
        self.lines += lines

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        try:
            function()
        except TypeError as error:
            self.write({"k": "trouble", "where": where, "error": str(error)})

    def of(self, stage: str) -> list[int]:
        return [line["step"] for line in self.lines if line.get("stage") == stage]

    @property
    def final(self) -> dict[str, Any]:
        return [line for line in self.lines if line["k"] == "final"][-1]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def trained(recorder: Recorder) -> Training:
    return Training("fake", recorder, FakeReader())  # type: ignore[arg-type]


def test_a_step_is_written_whole(recorder: Recorder, trained: Training) -> None:
    w = [Tensor(1.0)]
    trained.initial(w)
    trained.inputs([Tensor(3.0)])
    trained.loss(Tensor(0.5))
    trained.gradients(w)
    assert recorder.lines == []
    trained.step("a", w)
    assert [line["k"] for line in recorder.lines].count("generators") == 1
    assert {(line["step"], line["stage"]) for line in recorder.lines if line["k"] == "row"} == {
        (0, "init"), (1, "rng"), (1, "batch"), (1, "forward"), (1, "backward"), (1, "update")
    }  # fmt: skip


@pytest.mark.parametrize("unseen", [True, False])
def test_what_was_held_is_not_written_once_the_step_is_over(
    recorder: Recorder, unseen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(wire.ENV_HELD, "2")
    trained = Training("fake", recorder, FakeReader())  # type: ignore[arg-type]
    trained.held = lambda: [("optimizer", "momentum", "", "d")]
    trained.loss(Tensor(0.5))
    trained.unseen_step()  # such as the first of several steps of one call of a tf.function
    if unseen:
        trained.began()
    trained.loss(Tensor(0.25))
    trained.step("a", [Tensor(1.0)])
    held = [line for line in recorder.lines if line["k"] == "held"]
    assert [line["step"] for line in held] == ([] if unseen else [2])


def test_inputs_belong_to_the_step_whose_loss_they_lead_to(recorder: Recorder, trained: Training) -> None:
    for value in (1.0, 2.0, 3.0):
        trained.inputs([Tensor(value)])
        if value > 1.0:
            trained.step("loop", [Tensor(0.0)])  # the end of the step is detected only here
        trained.loss(Tensor(0.5))
    trained.step("loop", [Tensor(0.0)])
    assert recorder.of("batch") == [1, 2, 3]
    batches = [line["digest"] for line in recorder.lines if line.get("stage") == "batch"]
    assert len(set(batches)) == 3
    alone = Recorder()
    other = Training("fake", alone, FakeReader())  # type: ignore[arg-type]
    other.inputs([Tensor(1.0)])
    other.loss(Tensor(0.5))
    other.step("loop", [Tensor(0.0)])
    assert batches[0] == next(line["digest"] for line in alone.lines if line.get("stage") == "batch")


def test_the_final_weights_are_written_once_per_number_of_steps(recorder: Recorder, trained: Training) -> None:
    w = [Tensor(1.0)]
    trained.step("a", w)
    trained.finish()
    w[0].value = 7.0
    trained.finish()
    assert recorder.final["sum"] == (1.0).hex()
    trained.step("a", w)
    trained.finish()
    assert recorder.final["sum"] == (7.0).hex()
    assert recorder.final["steps"] == 2


def test_each_final_tensor_is_listed(recorder: Recorder, trained: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    w = [Tensor(1.5), Tensor(float("nan")), Tensor(2.0)]
    trained.step("a", w)
    w[0].value = 0.1
    trained.finish()
    assert [(kind, shape, total) for kind, shape, _, total in recorder.final["weights"]] == [
        ("f8", [1], (0.1).hex()), ("f8", [1], "nan"), ("f8", [1], (2.0).hex())
    ]  # fmt: skip
    digests = [line[2] for line in recorder.final["weights"]]
    assert len(set(digests)) == 3
    assert {len(one) for one in digests} == {16}
    monkeypatch.setattr(wire, "MOST_WEIGHTS", 2)
    trained.step("a", w)
    trained.finish()
    assert [line[2] for line in recorder.final["weights"]] == digests[:2]
    assert recorder.final["params"] == 3


def test_the_current_step(trained: Training) -> None:
    assert trained.current_step(after_loss=False) == 1
    trained.loss(Tensor(0.5))
    assert (trained.current_step(after_loss=True), trained.current_step(after_loss=False)) == (1, 2)
    trained.ends_late = False  # an optimizer marks the end of a step
    assert trained.current_step(after_loss=False) == 1
    trained.step("a", [Tensor(1.0)])
    assert trained.current_step(after_loss=True) == 2


def test_nothing_trained_writes_nothing(recorder: Recorder, trained: Training) -> None:
    trained.finish()
    assert recorder.lines == []


def test_a_dropped_model_is_recorded_with_its_last_weights(recorder: Recorder, trained: Training) -> None:
    owner, w = Owner(), [Tensor(1.0)]
    trained.step(1, w, owner)
    w[0].value = 5.0  # an average over the last steps, say
    del owner
    gc.collect()
    second = Owner()
    trained.step(2, [Tensor(2.0)], second)
    del w
    trained.finish()
    assert recorder.final["sum"] == (7.0).hex()
    assert recorder.final["params"] == 2


def test_weights_that_are_edited_after_their_owner_was_freed_count_as_they_are(
    recorder: Recorder, trained: Training
) -> None:
    owner, second, w = Owner(), Owner(), [Tensor(1.0), Tensor(2.0)]
    trained.step(1, w, owner)
    del owner
    trained.step(2, [Tensor(3.0)], second)
    w[0].value = 100.0
    trained.finish()
    assert recorder.final["sum"] == (105.0).hex()


def test_it_does_not_matter_when_an_owner_is_freed() -> None:
    def final(early: bool) -> dict[str, Any]:
        recorder = Recorder()
        trained = Training("torch", recorder, FakeReader())  # type: ignore[arg-type]
        first, second, shared, others = Owner(), Owner(), Tensor(3.0), [Tensor(4.0), Tensor(5.0)]
        trained.step("a", [shared, others[0]], first)
        trained.step("b", [shared, others[1]], second)
        if early:
            del first
            gc.collect()
        trained.step("b", [shared, others[1]], second)
        trained.finish()
        return recorder.final

    assert final(early=True) == final(early=False)


def test_a_set_is_digested_as_soon_as_its_owner_is_freed_but_not_within_a_hook(
    trained: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeReader, "may_read", lambda self: True)
    monkeypatch.setattr(FakeReader, "undisturbed", lambda self: contextlib.nullcontext())
    for busy in (False, True):
        owner, tensor = Owner(), Tensor(1.0)
        kept = weakref.ref(tensor)
        trained.step(busy, [tensor], owner)
        del tensor
        with trained.lock if busy else contextlib.nullcontext():
            del owner
            gc.collect()
        assert (kept() is not None) == busy
        trained.step(2, [Tensor(2.0)], None)
        assert kept() is None


def final_of(dropped: int, often: bool, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(weights, "_FOLD_FROM", 2 if often else 10**6)
    recorder = Recorder()
    trained = Training("torch", recorder, FakeReader())  # type: ignore[arg-type]
    outer, kept, owner = Owner(), [Tensor(0.5)], Owner()
    for number in range(dropped):
        owner = Owner()
        trained.step(("inner", number), [Tensor(number / 7), Tensor(1.0)], owner)
        if number == dropped // 2:
            trained.step("outer", kept, outer)
    del owner
    trained.finish()
    held = trained.weights
    assert len(held._in_order()) <= (8 if often else dropped + 1)
    return recorder.final


def test_any_number_of_dropped_sets_takes_little_room_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    folded, kept = (final_of(200, often, monkeypatch) for often in (True, False))
    assert folded == kept
    assert folded["params"] == 401
    assert len(folded["weights"]) == 401
    assert folded["digest"] != final_of(199, True, monkeypatch)["digest"]


def test_weights_of_a_released_set_count_once(recorder: Recorder, trained: Training) -> None:
    owner, shared = Owner(), Tensor(3.0)
    trained.step("a", [shared, Tensor(4.0)], owner)
    trained.step("b", [shared])
    del owner
    gc.collect()
    trained.step("b", [shared])
    trained.finish()
    assert recorder.final["sum"] == (7.0).hex()
    assert recorder.final["params"] == 2


def test_weights_that_a_second_owner_trains_count_once(recorder: Recorder, trained: Training) -> None:
    first, second, w = Owner(), Owner(), [Tensor(3.0), Tensor(4.0)]
    trained.step("a", w, first)
    del first
    gc.collect()
    trained.step("other", [Tensor(10.0)], second)  # releases the first set
    w[0].value = 5.0
    trained.step("b", w[:1], second)
    trained.finish()
    assert recorder.final["sum"] == (19.0).hex()
    assert recorder.final["params"] == 3


def test_weights_that_are_trained_in_two_ways_count_once(recorder: Recorder, trained: Training) -> None:
    w = [Tensor(3.0)]
    owner = Owner()
    trained.step(1, w, owner)
    trained.step("loop", w)
    trained.finish()
    assert recorder.final["sum"] == (3.0).hex()


def test_new_tensors_at_every_step_are_not_kept_forever(recorder: Recorder, trained: Training) -> None:
    for step in range(100):
        trained.step(("loop", step), [Tensor(float(step))])
    trained.finish()
    assert recorder.final["params"] <= 4
    assert recorder.of("update") == list(range(1, 101))


def test_large_weights_are_digested_at_powers_of_two(
    recorder: Recorder, trained: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "EVERY_STEP_BYTES", 100)
    w = [Tensor(1.0, 101)]
    for _ in range(20):
        trained.loss(Tensor(0.5))
        trained.gradients(w)
        trained.step("a", w)
    trained.finish()
    assert recorder.of("update") == recorder.of("backward") == [1, 2, 4, 8, 16]
    assert recorder.of("forward") == list(range(1, 21))
    assert recorder.final["sparse"] is True


def test_a_forked_child_starts_over(recorder: Recorder, trained: Training) -> None:
    trained.step("a", [Tensor(1.0)])
    trained.forget()
    trained.step("b", [Tensor(2.0)])
    trained.finish()
    assert (recorder.final["steps"], recorder.final["sum"]) == (1, (2.0).hex())


def test_a_backward_pass_without_a_step_is_not_written(recorder: Recorder, trained: Training) -> None:
    trained.initial([Tensor(1.0)])
    trained.loss(Tensor(0.5))
    trained.finish()
    assert recorder.lines == []
    trained.step("a", [Tensor(2.0)])
    trained.loss(Tensor(0.25))
    trained.finish()
    assert {line["step"] for line in recorder.lines if line["k"] == "row"} == {0, 1}
    assert recorder.lines[-1] == recorder.final


def test_a_training_in_a_thread_has_steps_of_its_own(recorder: Recorder, trained: Training) -> None:
    trained.step("a", [Tensor(1.0)])
    other = trained.for_thread()
    other.inputs([Tensor(3.0)])
    assert recorder.trainings == [trained]  # a thread that only runs models is no training
    for _ in range(2):
        other.step("b", [Tensor(2.0)])
    other.finish()
    trained.finish(others_trained=True)
    finals = {line["lane"]: (line["steps"], line["sum"]) for line in recorder.lines if line["k"] == "final"}
    assert finals == {1: (2, (2.0).hex()), 0: (1, (1.0).hex())}
    assert {(line.get("lane", 0), line["step"]) for line in recorder.lines if line["k"] == "row"} == {
        (0, 1), (1, 1), (1, 2)
    }  # fmt: skip


def test_a_step_ends_in_the_training_of_its_optimizer(recorder: Recorder, trained: Training) -> None:
    other = trained.for_thread()
    other.inputs([Tensor(3.0)])
    other.loss(Tensor(0.5))
    trained.take_over(other)
    trained.step("a", [Tensor(1.0)])
    assert [(line["stage"], line.get("lane", 0)) for line in recorder.lines if line["k"] == "row"] == [
        ("batch", 0), ("forward", 0), ("update", 0)
    ]  # fmt: skip
    other.finish()
    assert [line["k"] for line in recorder.lines] == ["row"] * 3 + ["weights"]


def test_objects_are_collected_once_unless_more_was_trained(
    recorder: Recorder, trained: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoStates:
        def names(self) -> dict[int, str]:
            return {}

        def at_step(self) -> None:
            pass

        def end(self) -> None:
            pass

        def at_end(self, of_task: bool) -> list[object]:
            return []

    collected: list[int] = []
    monkeypatch.setattr("gc.collect", lambda: collected.append(trained.steps))
    trained.states.append(NoStates())  # type: ignore[arg-type]
    for steps in (0, 1, 1, 2):
        if steps > trained.steps:
            trained.step("a", [Tensor(1.0)])
        trained.finish_all([])
        trained.finish_all([])
    assert collected == [0, 1, 2]
