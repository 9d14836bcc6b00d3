"""Sees what goes into a model: the tensors that the outermost module of a forward pass is called with."""

from __future__ import annotations

import sys
import threading

from .torch_compile import never_compile

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
    elif depth < _DEEPEST and hasattr(value, "values") and hasattr(value, "keys"):
        for item in value.values():
            yield from _leaves(item, tensor, depth + 1)


def watch_inputs(torch: Any, observe: Callable[[list[Any]], None]) -> None:
    """Call ``observe(tensors)`` at every outermost module call that may be trained through.

    Tensors that require a gradient come out of another module: they are no data. Global hooks are not given the
    keyword arguments, so those are read from the frame of the call.
    """
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
    inside = threading.local()

    def enter(module: Any, args: tuple[Any, ...]) -> None:
        if is_compiling():
            return
        depth = getattr(inside, "depth", 0)
        inside.depth = depth + 1
        if depth == 0 and torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1:
            kwargs = sys._getframe(1).f_locals.get("kwargs", {})
            data = [t for t in _leaves((args, kwargs), torch.Tensor) if not t.requires_grad]
            if data:
                observe(data)

    def leave(module: Any, args: Any, output: Any) -> None:
        if not is_compiling():
            inside.depth = max(0, getattr(inside, "depth", 0) - 1)

    never_compile(torch, enter, callees=True)
    never_compile(torch, leave, callees=True)
    modules = sys.modules["torch.nn.modules.module"]
    modules.register_module_forward_pre_hook(enter)
    modules.register_module_forward_hook(leave, always_call=True)
