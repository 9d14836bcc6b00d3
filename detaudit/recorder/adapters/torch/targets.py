"""Find what loss functions compare the outputs of a model with, in the graph of the loss.

``torch.nn.functional`` has no hook, but the graph keeps the targets for the backward pass.
"""

from __future__ import annotations

import itertools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

NODES = 32
"""How many nodes of the graph of a loss are looked at: the loss functions are at its root."""

_SAVED = ("_saved_target", "_saved_targets")


_HEAP = 1 << 9
"""The flag of classes made by Python code, which may be freed. Torch's own nodes are of others."""

_kept: dict[type, str | None] = {}
"""Where each of these classes keeps a target."""


def _where(kind: type) -> str | None:
    if kind not in _kept:
        found = next((name for name in _SAVED if hasattr(kind, name)), None)
        if kind.__flags__ & _HEAP:
            return found
        _kept[kind] = found
    return _kept[kind]


def targets_of(torch: Any, losses: Iterable[Any]) -> list[Any]:
    """Return the targets of the loss functions in the graphs of these losses, nearest to the root first."""
    found = []
    waiting = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    for node in itertools.islice(waiting, NODES):  # more are appended meanwhile
        saved = _where(type(node))
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
