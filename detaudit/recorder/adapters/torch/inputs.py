"""Observe the outermost calls of modules: what they are called with, and what they return."""

from __future__ import annotations

import functools
import threading
import types

from ...process.headroom import headroom
from ...training.nested import leaves
from .compiling import compiling, never_compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def data_in(torch: Any, call: Any) -> list[Any]:
    """Return the tensors among the arguments of a call that do not require a gradient.

    The others are outputs of another module, not data.
    """
    return [leaf for leaf in leaves(call) if isinstance(leaf, torch.Tensor) and not leaf.requires_grad]


class _Inside(threading.local):
    """Whether this thread is inside a module's call."""

    now = False


class Calls:
    """What to do around each outermost call of a module, or of its method ``generate``. None of it may raise.

    ``entered(module, call, learns)`` precedes a call: ``call`` is (args, kwargs), or None if the values of this call
    are not to be read, and ``learns`` says whether gradients are enabled. ``returned(result)`` follows if they are.
    """

    def __init__(self, torch: Any, entered: Callable[[Any, Any, bool], None], returned: Callable[[Any], None]) -> None:
        self._torch = torch
        self._entered, self._returned = entered, returned
        self._compiling, self._inside = compiling(torch), _Inside()

    def watch(self) -> None:
        """Wrap Module.__call__, because a global hook would take every module of a model off torch's fast path."""
        module = self._torch.nn.Module
        call = module.__call__

        @functools.wraps(call)
        def __call__(module_: Any, *args: Any, **kwargs: Any) -> Any:
            if self._compiling() or self._inside.now:
                return call(module_, *args, **kwargs)
            return self._outermost(call, module_, args, kwargs)

        never_compile(self._torch, __call__, callees=False)
        never_compile(self._torch, Calls._outermost, callees=False)
        module.__call__ = __call__
        self._watch_classes(module)

    def _outermost(self, call: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        torch = self._torch
        self._inside.now = True
        with headroom:
            try:
                # In a backward pass a checkpoint is recomputed, and a call that is traced returns no values.
                counts = torch._C._current_graph_task_id() == -1
                reads = counts and torch._C._get_tracing_state() is None
                if counts:
                    self._entered(module, (args, kwargs) if reads else None, torch.is_grad_enabled())
                result = call(module, *args, **kwargs)
                if reads:
                    self._returned(result)
                return result
            finally:
                self._inside.now = False

    def _watch_classes(self, module: Any) -> None:
        """Wrap the method ``generate`` of each class of modules, when the class is made."""

        def __init_subclass__(cls: type[Any], /, **kwargs: Any) -> None:
            super(module, cls).__init_subclass__(**kwargs)
            owners: tuple[Any, ...] = cls.__mro__
            for owner in owners:  # it may come from a mixin
                generate = vars(owner).get("generate")
                if isinstance(generate, types.FunctionType) and generate not in wrapped:
                    owner.generate = self._generating(generate)
                    wrapped.add(owner.generate)

        wrapped: set[Any] = set()
        module.__init_subclass__ = classmethod(__init_subclass__)

    def _generating(self, generate: Callable[..., Any]) -> Any:
        @functools.wraps(generate)
        def generate_(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._compiling() or self._inside.now or not isinstance(module, self._torch.nn.Module):
                return generate(module, *args, **kwargs)
            return self._outermost(generate, module, args, kwargs)

        never_compile(self._torch, generate_, callees=False)
        return generate_
