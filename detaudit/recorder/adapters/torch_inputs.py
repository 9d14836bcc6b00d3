"""Sees what goes into a model: the tensors that the outermost module of a forward pass is called with."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping

from .torch_compile import compiling, never_compile

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
    """Return the tensors among the arguments of a call that require no gradient.

    Those that do come out of another module: they are no data.
    """
    return [tensor for tensor in _leaves(call, torch.Tensor) if not tensor.requires_grad]


def watch_inputs(torch: Any, observe: Callable[[Any], None]) -> None:
    """Call ``observe((args, kwargs))``, which never raises, at each outermost module call under a gradient.

    Global hooks are not given the keyword arguments, so those are read from the frame of the call.
    """
    is_compiling = compiling(torch)
    inside = threading.local()

    def enter(module: Any, args: tuple[Any, ...]) -> None:
        if is_compiling():
            return
        depth = getattr(inside, "depth", 0)
        inside.depth = depth + 1
        if depth == 0 and torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1:
            observe((args, sys._getframe(1).f_locals.get("kwargs", {})))

    def leave(module: Any, args: Any, output: Any) -> None:
        if not is_compiling():
            inside.depth = max(0, getattr(inside, "depth", 0) - 1)

    never_compile(torch, enter, callees=True)
    never_compile(torch, leave, callees=True)
    modules = sys.modules["torch.nn.modules.module"]
    modules.register_module_forward_pre_hook(enter)
    modules.register_module_forward_hook(leave, always_call=True)
