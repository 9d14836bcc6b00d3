"""Nothing is looked for among all optimizers that were made before, as long as the latest one answers."""

import sys
import threading
import types
import weakref
from typing import Any

import pytest

from detaudit.recorder.frameworks.torch.training import Optimizers, Steps, successors

torch = pytest.importorskip("torch")


class Optimizer:
    looked_at = 0

    def __init__(self) -> None:
        self.weight = torch.zeros(2, requires_grad=True)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        Optimizer.looked_at += 1
        return [{"params": [self.weight]}]


def test_a_thousand_optimizers_cost_no_more_than_one() -> None:
    training: Any = None
    known, optimizers = Optimizers(), [Optimizer() for _ in range(1000)]
    for optimizer in optimizers:
        known.constructed[optimizer] = threading.get_ident()
    latest = optimizers[500]
    known.latest = weakref.ref(latest)
    latest.weight.grad = torch.ones(2)
    Optimizer.looked_at = 0
    found = known.accumulated(Steps(training))
    assert found is not None
    assert found[0]() is latest.weight
    assert not known.unowned([latest.weight])
    assert Optimizer.looked_at == 2
    assert not known.unowned([latest.weight, optimizers[7].weight])
    assert known.unowned([torch.zeros(1)])


def test_gradients_of_other_threads_are_not_touched() -> None:
    training: Any = None
    known, ours, theirs, new = Optimizers(), Optimizer(), Optimizer(), Optimizer()
    main, other = Steps(training), Steps(training)
    for optimizer, thread in ((ours, threading.get_ident()), (theirs, threading.get_ident()), (new, 0)):
        known.constructed[optimizer] = thread
        optimizer.weight.grad = torch.ones(2)
    known.homes[theirs], known.latest = (1, other), weakref.ref(theirs)
    assert [*known.owned(main)] == [ours.weight]
    assert [*known.owned(other)] == [theirs.weight, ours.weight, theirs.weight]
    assert len({id(weight) for weight in known.owned()}) == 3


def test_what_a_last_update_made_is_in_variables_and_not_in_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    class Holder:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

    class Cached(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.rand(2), persistent=False)

    main = types.ModuleType("__main__")
    for kind in (Holder, Cached):
        monkeypatch.setattr(kind, "__module__", "__main__")
    leaf, made, within = (torch.zeros(2) for _ in range(3))
    vars(main).update(leaf=leaf, model=Cached(), made=[made], holder=Holder(within), other=torch.zeros(3))
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert [id(one) for one in successors(torch, [leaf])] == [id(made), id(within)]
