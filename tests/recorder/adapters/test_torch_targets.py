"""What a loss function of torch compares with belongs to the batch, however it was called."""

from collections.abc import Callable
from typing import Any

import pytest

from detaudit.recorder.frameworks.torch.modules import targets_of

torch = pytest.importorskip("torch")
F = torch.nn.functional

SMOOTH: Any = torch.nn.SmoothL1Loss()
CLASSES = torch.tensor([0, 2, 1, 2])
SHARES = torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.3, 0.7], [1.0, 0.0]])


def out(width: int) -> Any:
    return torch.ones(4, width, requires_grad=True) * 2


LOSSES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "cross entropy": (lambda: F.cross_entropy(out(3), CLASSES), [CLASSES]),
    "a weighted sum": (lambda: (0.5 * F.nll_loss(out(3), CLASSES) + F.mse_loss(out(2), SHARES)) / 2, [SHARES, CLASSES]),
    "binary": (lambda: F.binary_cross_entropy_with_logits(out(2), SHARES), [SHARES]),
    "in a module": (lambda: SMOOTH(out(2), SHARES), [SHARES]),
    "ctc": (lambda: F.ctc_loss(out(3).view(2, 2, 3), CLASSES[1:3, None], (2, 2), (1, 1)), [CLASSES[1:3, None]]),
    "by hand": (lambda: (out(2) - SHARES).square().mean(), []),
    "an output of a model": (lambda: F.mse_loss(out(2), out(2)), []),
    "far from the loss": (lambda: chain(F.mse_loss(out(2), SHARES), 100), []),
    "no graph": (lambda: torch.ones(1), []),
}


def chain(value: Any, length: int) -> Any:
    for _ in range(length):
        value = value * 1.0
    return value


@pytest.mark.parametrize("name", LOSSES)
def test_the_targets_of_a_loss(name: str) -> None:
    loss, expected = LOSSES[name]
    found = targets_of(torch, [loss()])
    assert {tuple(target.flatten().tolist()) for target in found} == {tuple(one.flatten().tolist()) for one in expected}


def test_no_hook_is_called() -> None:
    unpacked = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: unpacked.append(tensor)):
        loss = F.cross_entropy(out(3), CLASSES)
    assert targets_of(torch, [loss]) == unpacked == []
