"""Hook every operation of TensorFlow, eager or in the graph of a tf.function, while the window is open.

After each operation in a graph, the recorder adds an operation that gets its inputs and outputs, and records them if
the window is open. The results of user code do not change, but it runs more slowly, and operations are not fused. XLA
cannot compile the added operations, so ``jit_compile`` is off in an instrumented run. In functions of tf.data,
operations that may race are only listed; the results of tf.data are recorded. Graphs of tf.compat.v1 are not recorded.

At the level ``modules`` no graph is changed: operations that may race are listed when they are traced. At the level
``racing``, operations are added only after those that may race, which is less likely to hide a race. At the level
``tensors``, ``n`` counts the eager operations of a thread, which have no key.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading

from ..in_threads import enter_in_threads
from .calls import Calls
from .operations import Operations
from .places import GraphNames, Places
from .racing import Racing
from .scan import Scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..stream import OpStream
    from .calls import Call


class OperationWatcher:
    """Installs the hooks into TensorFlow. Its callback for operations has to be added in each thread."""

    def __init__(self, tf: Any, stream: OpStream) -> None:
        self._stream = stream
        self._inside = threading.local()
        self._calls = Calls()
        self._racing = Racing(stream.racing)
        self._lists_only = stream.level == "modules"
        self._context: Any = importlib.import_module("tensorflow.python.eager.context")
        self._add: Any = importlib.import_module("tensorflow.python.framework.op_callbacks").add_op_callback
        places, names = Places(), GraphNames()
        self._list = Scan(stream, self._racing, places, names).handle
        self._handle: Callable[..., None] = self._list
        self._around_call: Callable[[Call, Any], Callable[[], None]] = lambda call, arguments: lambda: None
        if not self._lists_only:
            operations = Operations(tf, stream, self._calls, self._racing, places, names)
            self._handle, self._around_call = operations.handle, operations.around_call

    def install(self) -> None:
        """Install the hooks."""
        functions = "tensorflow.python.eager.polymorphic_function."
        function = importlib.import_module(functions + "polymorphic_function").Function
        self._calls.watch(function, self._on_call)
        self._calls.watch(importlib.import_module(functions + "concrete_function").ConcreteFunction, self._on_call)
        if not self._lists_only:
            self._disable_xla(function)
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
    def _disable_xla(function: Any) -> None:
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
        listed = self._lists_only or self._racing.in_data or "Dataset" in kind
        if getattr(inside, "busy", False) or not (listed or graph is not None or self._stream.open):
            return
        inside.busy = True
        try:
            name = op_name.decode() if isinstance(op_name, bytes) else op_name
            handle = self._list if listed else self._handle
            handle(kind, inputs, outputs, name, graph, sys._getframe(1), attrs)
        except Exception as error:
            self._stream.trouble("operation", error)
        finally:
            inside.busy = False


def install(module: ModuleType, stream: OpStream) -> None:
    """Record the operations of this TensorFlow as the level of ``stream`` requests."""
    if stream.level in ("ops", "racing", "tensors", "modules"):
        OperationWatcher(module, stream).install()
