"""The gradients of a rank are digested before anything changes them, in the order of the weights."""

import pickle
from typing import Any

import pytest

from detaudit.recorder.frameworks.torch.reader import TorchReader
from detaudit.recorder.frameworks.torch.training import OwnGradients, has_others

torch = pytest.importorskip("torch")


class FakeTraining:
    """A training in which gradients are due or not."""

    steps = 0

    def __init__(self, due: bool = True) -> None:
        self._due = due

    def due(self, step: int, tensors: Any) -> bool:
        return self._due


def weights() -> list[Any]:
    return [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]


def digested(found: list[Any], factor: float = 1.0, due: bool = True, changed: float = 1.0) -> str | None:
    own, training = OwnGradients(TorchReader(torch)), FakeTraining(due)
    own.before_backward([*found, *found], training)  # type: ignore[arg-type]
    (factor * sum(weight.sum() for weight in found)).backward()
    for weight in found:
        weight.grad *= changed  # as a collective does
    return own.taken(found)


def test_what_changes_gradients_later_does_not_count() -> None:
    first = digested(weights())
    assert first is not None
    assert first == digested(weights(), changed=0.5)
    assert first != digested(weights(), factor=2.0)


def test_all_gradients_since_the_last_step_count_once() -> None:
    own, training, found = OwnGradients(TorchReader(torch)), FakeTraining(), weights()
    taken = []
    for passes in (1, 2, 1):
        for _ in range(passes):
            own.before_backward(found, training)  # type: ignore[arg-type]
            (found[0].sum() + found[1].sum()).backward()
        taken.append(own.taken(found))
    assert taken[0] == taken[2] != taken[1]
    assert own.taken(found) is None


def test_gradients_that_are_not_due_or_were_thrown_away_do_not_count() -> None:
    assert digested(weights(), due=False) is None
    own, found = OwnGradients(TorchReader(torch)), weights()
    own.before_backward(found, FakeTraining())  # type: ignore[arg-type]
    found[0].sum().backward()
    own.forget()
    assert own.taken(found) is None


@pytest.mark.filterwarnings("error")
def test_a_weight_can_be_pickled() -> None:
    found = weights()
    digested(found)
    assert torch.equal(pickle.loads(pickle.dumps(found[0])), found[0])


@pytest.mark.parametrize("world", ["", "1", "2"])
def test_other_ranks(monkeypatch: pytest.MonkeyPatch, world: str) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", world)
    assert has_others() is (world == "2")
