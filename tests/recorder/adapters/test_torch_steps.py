"""Nothing is looked for among all optimizers that were made before, as long as the latest one answers."""

import weakref
from typing import Any

import pytest

from detaudit.recorder.adapters.torch.steps import ThreadSteps

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
    threads, optimizers = ThreadSteps(training), [Optimizer() for _ in range(1000)]
    for optimizer in optimizers:
        threads.constructed.add(optimizer)
    latest = optimizers[500]
    threads.latest = weakref.ref(latest)
    latest.weight.grad = torch.ones(2)
    Optimizer.looked_at = 0
    found = threads.accumulated()
    assert found is not None
    assert found[0]() is latest.weight
    assert threads._are_owned([latest.weight])
    assert Optimizer.looked_at == 2
    assert threads._are_owned([latest.weight, optimizers[7].weight])
    assert not threads._are_owned([torch.zeros(1)])
