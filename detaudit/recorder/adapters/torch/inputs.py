"""Observe the outermost module of each forward pass, and find its inputs: the tensors that it is called with."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping

from .compiling import compiling, never_compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_DEEPEST = 6


def _leaves(value: Any, tensor: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, tensor):
        yield value
    elif depth < _DEEPEST and isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item, tensor, depth + 1)
    elif depth < _DEEPEST and isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item, tensor, depth + 1)


def data_in(torch: Any, call: Any) -> list[Any]:
    """Return the tensors among the arguments of a call that do not require a gradient.

    The others are outputs of another module, not data.
    """
    return [tensor for tensor in _leaves(call, torch.Tensor) if not tensor.requires_grad]


class _Inside(threading.local):
    """Whether this thread is inside a module's call."""

    now = False


def watch_calls(torch: Any, ran: Callable[[Any], None], observe: Callable[[Any], None]) -> None:
    """Call ``ran(module)`` before each outermost module call, and ``observe((args, kwargs))`` if gradients are enabled.

    Neither may raise. This wraps Module.__call__, because a global hook would take every module of a model off torch's
    fast path.
    """
    is_compiling = compiling(torch)
    inside = _Inside()
    module = torch.nn.Module
    call = module.__call__

    @functools.wraps(call)
    def __call__(module_: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or inside.now:
            return call(module_, *args, **kwargs)
        inside.now = True
        try:
            if torch._C._current_graph_task_id() == -1:  # otherwise a checkpoint is recomputed
                ran(module_)
                if torch.is_grad_enabled():
                    observe((args, kwargs))
            return call(module_, *args, **kwargs)
        finally:
            inside.now = False

    never_compile(torch, __call__, callees=False)
    module.__call__ = __call__
