"""Find what loss functions compare the outputs of a model with, in the graph of the loss.

``torch.nn.functional`` has no hook, but the graph keeps the targets for the backward pass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

NODES = 32
"""How many nodes of the graph of a loss are looked at: the loss functions are at its root."""

_SAVED = ("_saved_target", "_saved_targets")


def targets_of(torch: Any, losses: Iterable[Any]) -> list[Any]:
    """Return the targets of the loss functions in the graphs of these losses, nearest to the root first."""
    found = []
    waiting = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    for _ in range(NODES):
        if not waiting:
            break
        node = waiting.pop(0)
        saved = next((name for name in _SAVED if hasattr(type(node), name)), None)
        if saved is None:
            waiting += [function for function, _ in node.next_functions if function is not None]
        elif _unhooked(node, saved):
            target = getattr(node, saved)
            if isinstance(target, torch.Tensor) and not target.requires_grad:
                found.append(target)
    return found


def _unhooked(node: Any, saved: str) -> bool:
    """Return whether reading a tensor of a graph calls no hook: one of a checkpoint would compute it again."""
    return getattr(getattr(node, saved.replace("_", "_raw_", 1), None), "unpack_hook", node) is None
