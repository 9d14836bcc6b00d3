"""Decide which operations of TensorFlow may race: those known to, and those that are repeatable only in sequence."""

from __future__ import annotations

import functools
import sys
import threading

from ...randomness import tensorflow_data
from . import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType, ModuleType
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

    def may(self, op_type: str, graph: Any, inputs: Sequence[Any] = ()) -> bool:
        """Return whether an operation may race in this graph, or eagerly if that is None.

        One of tf.data does not if it has become sequential, or keeps its order by a flag.
        """
        if op_type in self._names:
            return not ("Dataset" in op_type and _is_in_order(inputs))
        parallel = getattr(self._local, "parallel", 0) or "while_body" in getattr(graph, "name", "")
        return bool(parallel) and kinds.RACES_IN_PARALLEL.match(op_type) is not None

    def watch_data(self, module: ModuleType) -> None:
        """Wrap the tracing of functions for tf.data. ``module`` is ``structured_function``."""
        wrapper: Any = module.StructuredFunctionWrapper
        make, local = wrapper.__init__, self._local

        @functools.wraps(make)
        def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:
            parallel = _calls_in_parallel(sys._getframe(1))
            local.data = getattr(local, "data", 0) + 1
            local.parallel = getattr(local, "parallel", 0) + parallel
            try:
                make(wrapper, *args, **kwargs)
            finally:
                local.data -= 1
                local.parallel -= parallel

        wrapper.__init__ = __init__


def _is_in_order(inputs: Sequence[Any]) -> bool:
    """Return whether a parallel operation of tf.data, whose last input is the number of calls, runs in order by now."""
    return tensorflow_data.keeps_order() or (len(inputs) > 0 and tensorflow_data.is_one(inputs[-1]))


def _calls_in_parallel(frame: FrameType) -> bool:
    """Return whether the constructor of a dataset traces a function that is then called several times at once."""
    if tensorflow_data.keeps_order():
        return False
    given, absent = frame.f_locals, object()
    calls = given.get(tensorflow_data.PARALLEL, absent)
    return not tensorflow_data.is_one(calls) and (calls is not absent or "Parallel" in type(given.get("self")).__name__)
