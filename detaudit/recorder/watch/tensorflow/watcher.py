"""Watches every operation of TensorFlow, eager or in the graph of a tf.function, while the window is open.

Behind each operation of a graph comes one of ours that is handed its inputs and outputs, and is asked at each run
whether the window is open. What the user's code computes is left as it is, but more slowly, and what would be fused
into one operation is not. Such an operation cannot be compiled by XLA: ``jit_compile`` is off in a run that is watched.
In the functions of tf.data, what may race is only listed; what comes out of them is watched. The graphs of
tf.compat.v1 are not.

At level ``modules`` no graph is changed: what may race is listed when it is traced. At level ``racing`` only what may
race is followed by an operation of ours, so that watching hides less. At level ``tensors``, ``n`` counts
the operations of a thread that ran eagerly, those without a key.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading

from ..in_threads import enter_in_threads
from .calls import Calls
from .operations import GraphNames, Operations
from .places import Places
from .racing import Racing
from .scan import Scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..stream import OpStream
    from .calls import Call


class _Watcher:
    """The hooks into TensorFlow. A callback for operations belongs to one thread: each has to be given it."""

    def __init__(self, tf: Any, stream: OpStream) -> None:
        self._stream = stream
        self._inside = threading.local()
        self._calls = Calls()
        self._racing = Racing(stream.racing)
        self._looks_only = stream.level == "modules"
        self._context: Any = importlib.import_module("tensorflow.python.eager.context")
        self._add: Any = importlib.import_module("tensorflow.python.framework.op_callbacks").add_op_callback
        self._list = Scan(stream, Places(), GraphNames().of, self._racing).seen
        self._seen: Callable[..., None] = self._list
        self._around_call: Callable[[Call, Any], Callable[[], None]] = lambda call, arguments: lambda: None
        if not self._looks_only:
            operations = Operations(tf, stream, self._calls, self._racing)
            self._seen, self._around_call = operations.seen, operations.around_call

    def install(self) -> None:
        """Put the hooks in place."""
        functions = "tensorflow.python.eager.polymorphic_function."
        function = importlib.import_module(functions + "polymorphic_function").Function
        self._calls.watch(function, self._on_call)
        self._calls.watch(importlib.import_module(functions + "concrete_function").ConcreteFunction, self._on_call)
        if not self._looks_only:
            self._compile_nothing(function)
        self._racing.watch_data(importlib.import_module("tensorflow.python.data.ops.structured_function"))
        enter_in_threads(self._enter)
        self._watch_thread()

    def _on_call(self, call: Call, arguments: Any) -> Callable[[], None]:
        self._watch_thread()
        return self._around_call(call, arguments)

    def _watch_thread(self) -> None:
        if not getattr(self._inside, "watched", False):
            self._inside.watched = True
            self._add(self._callback)

    def _enter(self) -> None:
        try:
            self._watch_thread()
        except Exception as error:
            self._stream.trouble("thread", error)

    @staticmethod
    def _compile_nothing(function: Any) -> None:
        make = function.__init__

        @functools.wraps(make)
        def __init__(function_: Any, *args: Any, **kwargs: Any) -> None:
            if kwargs.get("jit_compile"):
                kwargs["jit_compile"] = None
            make(function_, *args, **kwargs)

        function.__init__ = __init__

    def _callback(
        self, op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        inside = self._inside
        kind = op_type.decode() if isinstance(op_type, bytes) else op_type
        listed = self._looks_only or self._racing.in_data or "Dataset" in kind
        if getattr(inside, "busy", False) or not (listed or graph is not None or self._stream.open):
            return
        inside.busy = True
        try:
            name = op_name.decode() if isinstance(op_name, bytes) else op_name
            (self._list if listed else self._seen)(kind, inputs, outputs, name, graph, sys._getframe(1))
        except Exception as error:
            self._stream.trouble("operation", error)
        finally:
            inside.busy = False


def install(module: ModuleType, stream: OpStream) -> None:
    """Watch the operations of this TensorFlow from now on."""
    if stream.level in ("ops", "racing", "tensors", "modules"):
        _Watcher(module, stream).install()
