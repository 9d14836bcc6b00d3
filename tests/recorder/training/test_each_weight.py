"""Weights are listed one by one at steps 1, 2, 4, 8, …, with the digests that are made anyway, tested with fakes."""

from typing import Any

import pytest

from detaudit.recorder.training import weights
from detaudit.recorder.training.steps import Training
from tests.recorder.training.test_steps import FakeReader, Owner, Recorder, Tensor


class CountingReader(FakeReader):
    """Counts how often tensors are read; sums of negative values fail."""

    def __init__(self) -> None:
        self.digested = self.summed = 0

    def part(self, name: str, tensor: Tensor) -> tuple[str, str, tuple[int, ...], int]:
        self.digested += 1
        return super().part(name, tensor)

    def total(self, tensor: Tensor) -> float:
        self.summed += 1
        if tensor.value < 0:
            raise TypeError("no sum")
        return tensor.value


@pytest.fixture
def reader() -> CountingReader:
    return CountingReader()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def trained(recorder: Recorder, reader: CountingReader) -> Training:
    return Training("fake", recorder, reader)  # type: ignore[arg-type]


def listed(recorder: Recorder) -> list[dict[str, Any]]:
    return [line for line in recorder.lines if line["k"] == "weights"]


def test_weights_are_listed_at_powers_of_two_as_at_the_end(recorder: Recorder, trained: Training) -> None:
    w = [Tensor(1.0), Tensor(2.0)]
    for step in range(1, 10):
        w[1].value = float(step)
        trained.step("a", w)
        assert (len(recorder.lines) - len(listed(recorder))) == step  # nothing waits for a later step
    assert [(line["step"], line["set"], line["count"]) for line in listed(recorder)] == [
        (1, 0, 2), (2, 0, 2), (4, 0, 2), (8, 0, 2)
    ]  # fmt: skip
    trained.finish()
    w[1].value = 8.0
    again = Recorder()
    other = Training("fake", again, FakeReader())  # type: ignore[arg-type]
    other.step("a", w)
    other.finish()
    assert listed(recorder)[-1]["tensors"] == again.final["weights"] == listed(again)[0]["tensors"]


def test_no_weight_is_digested_twice_and_sums_are_made_at_powers_of_two_only(
    trained: Training, reader: CountingReader
) -> None:
    w = [Tensor(1.0), Tensor(2.0), Tensor(3.0)]
    for _ in range(1000):
        trained.step("a", w)
    assert reader.digested == 3 * 1000
    assert reader.summed == 3 * 10


def test_of_many_weights_the_first_are_listed(
    recorder: Recorder, trained: Training, reader: CountingReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_MOST", 2)
    trained.step("a", [Tensor(1.0), Tensor(2.0), Tensor(3.0)])
    (line,) = listed(recorder)
    assert (line["count"], len(line["tensors"]), reader.summed) == (3, 2, 2)


def test_large_weights_are_listed_when_they_are_digested(
    recorder: Recorder, trained: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "EVERY_STEP_BYTES", 0)
    for _ in range(5):
        trained.step("a", [Tensor(1.0)])
    assert recorder.of("update") == [line["step"] for line in listed(recorder)] == [1, 2, 4]


def test_without_the_stage_update_nothing_is_listed(recorder: Recorder) -> None:
    recorder.stages = frozenset({"forward"})
    trained = Training("fake", recorder, FakeReader())  # type: ignore[arg-type]
    trained.step("a", [Tensor(1.0)])
    assert listed(recorder) == []


def test_a_weight_without_a_sum_changes_nothing_but_the_list(recorder: Recorder, trained: Training) -> None:
    owner, w = Owner(), [Tensor(-1.0)]
    trained.step("a", w, owner)
    assert listed(recorder) == []
    assert recorder.of("update") == [1]
    assert {"k": "trouble", "where": "weights", "error": "no sum"} in recorder.lines
    w[0].value = 1.0
    trained.step("a", w, owner)
    trained.finish()
    assert [line["step"] for line in listed(recorder)] == [2]
    assert (recorder.final["steps"], recorder.final["params"]) == (2, 1)


def test_optimizers_that_take_turns_have_a_number_each(recorder: Recorder, trained: Training) -> None:
    for _ in range(4):
        trained.step("generator", [Tensor(1.0)])
        trained.step("discriminator", [Tensor(2.0)])
    assert [(line["step"], line["set"]) for line in listed(recorder)] == [(1, 0), (2, 1), (4, 1), (8, 1)]


def test_the_first_line_of_a_set_has_the_names_of_its_tensors(recorder: Recorder, trained: Training) -> None:
    w = [Tensor(1.0), Tensor(2.0)]

    class Model:
        def names(self) -> dict[int, str]:
            return {id(w[1]): "net.\ud800", id(w): "other"}

        def at_step(self) -> None:
            return None

    trained.states.append(Model())  # type: ignore[arg-type]
    for _ in range(2):
        trained.step("a", w)
    for _ in range(2):
        trained.step("a", w[1:])
    assert [line.get("names") for line in listed(recorder)] == [[None, "net.\\ud800"], None, ["net.\\ud800"]]
    assert [line["set"] for line in listed(recorder)] == [0, 0, 1]


def test_a_forked_child_lists_its_own(recorder: Recorder, trained: Training) -> None:
    trained.step("a", [Tensor(1.0)])
    trained.forget()
    trained.step("b", [Tensor(2.0)])
    assert [(line["step"], line["set"]) for line in listed(recorder)] == [(1, 0), (1, 0)]


def test_the_end_says_the_type_of_the_last_loss(recorder: Recorder, trained: Training) -> None:
    trained.step("a", [Tensor(1.0)])
    trained.finish()
    assert (recorder.final["loss"], recorder.final["loss_dtype"]) == (None, None)
    trained.loss(Tensor(0.5))
    trained.step("a", [Tensor(1.0)])
    trained.finish()
    assert (recorder.final["loss"], recorder.final["loss_dtype"]) == ((0.5).hex(), "f8")
