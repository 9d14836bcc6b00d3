"""Decide which operations of TensorFlow may race: those known to, and those that are repeatable only in sequence."""

from __future__ import annotations

import functools
import threading

from . import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class Racing:
    """Knows which operations race, and whether a function for tf.data is being traced."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._local = threading.local()

    @property
    def in_data(self) -> bool:
        """Whether this thread is tracing a function for tf.data."""
        return bool(getattr(self._local, "data", 0))

    def may(self, op_type: str, graph: Any) -> bool:
        """Return whether an operation may race in this graph, or eagerly if that is None."""
        in_parallel = self.in_data or "while_body" in getattr(graph, "name", "")
        return op_type in self._names or (in_parallel and kinds.RACES_IN_PARALLEL.match(op_type) is not None)

    def watch_data(self, module: ModuleType) -> None:
        """Wrap the tracing of functions for tf.data. ``module`` is ``structured_function``."""
        wrapper: Any = module.StructuredFunctionWrapper
        make, local = wrapper.__init__, self._local

        @functools.wraps(make)
        def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:
            local.data = getattr(local, "data", 0) + 1
            try:
                make(wrapper, *args, **kwargs)
            finally:
                local.data -= 1

        wrapper.__init__ = __init__
