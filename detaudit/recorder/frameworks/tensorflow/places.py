"""The line, the layer and the graph of an operation, and calls of functions by number."""

from __future__ import annotations

import functools
import importlib
import os
import threading
import weakref
from typing import NamedTuple

from .... import wire
from ...process import frames, threads
from ...process.log import Sink

# Number the calls of tf.functions, to identify an operation in two runs even if operations run in no fixed order.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any


class Call:
    """The n-th outermost call of a thread. ``alone`` is true as long as no other thread is inside a call as well."""

    def __init__(self, thread: str, number: int) -> None:
        self.thread, self.number = thread, number
        self.alone = True

    @property
    def name(self) -> str:
        """The unique name of this call."""
        return str(self.number) if self.thread == wire.MAIN_THREAD else f"{self.thread}.{self.number}"


class Calls:
    """Counts the outermost calls of each thread.

    The operations of a function run in TensorFlow's own threads. If two threads of the script are inside functions at
    the same time, an operation cannot be assigned to one of them.
    """

    def __init__(self) -> None:
        self._local = threading.local()
        self._counts: dict[str, int] = {}
        self._running: list[Call] = []
        self._latest = Call(wire.MAIN_THREAD, 0)
        self._seen: dict[tuple[str, str, str], int] = {}
        self._eager: Any = importlib.import_module("tensorflow.python.eager.context").executing_eagerly

    @property
    def current(self) -> Call:
        """The running call, or else the last one, after which its gradient runs."""
        running = self._running
        return running[-1] if running else self._latest

    def key(self, graph: str, node: str) -> str:
        """Return a unique name for this run of a node."""
        call = self.current.name
        occurrence = self._seen.get((call, graph, node), 0)
        self._seen[call, graph, node] = occurrence + 1
        return f"{call}/{graph}/{node}/{occurrence}"

    def watch(self, function: Any, around: Callable[[Call, Any], Callable[[], None]]) -> None:
        """Count the calls of this class of functions, and call ``around(call, arguments)`` before each.

        It returns a function to be called after the call. Neither may raise.
        """
        call = function.__call__

        @functools.wraps(call)
        def __call__(function_: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._local, "inside", False) or not self._eager():
                return call(function_, *args, **kwargs)
            self._local.inside = True
            started = self._begin()
            try:
                after = around(started, (args, kwargs))
                result = call(function_, *args, **kwargs)
                after()
                return result
            finally:
                self._local.inside = False
                self._latest = started
                self._running.remove(started)

        function.__call__ = __call__

    def _begin(self) -> Call:
        thread = threads.name_of_lane()
        number = self._counts[thread] = self._counts.get(thread, 0) + 1
        started = Call(thread, number)
        if not self._running:
            self._seen = {}
        self._running.append(started)
        if len(self._running) > 1:
            for one in list(self._running):
                one.alone = False
        return started


# Find the line of user code, the Keras layer and the graph that an operation of TensorFlow belongs to.


_LAYERS = ("/keras/src/layers/layer.py", "/keras/src/engine/base_layer.py", "/tf_keras/src/engine/base_layer.py")
_GENERATED = "__autograph_generated_file"
_MOST_FORWARD = 20_000


class OperationPosition(NamedTuple):
    """A line of user code, and the path of the layer that it called."""

    file: str = ""
    line: int = 0
    module: str = ""


_FOLDER = os.path.dirname(__file__)
_OWN = os.path.join(_FOLDER, "graphs.py"), os.path.join(_FOLDER, "reader.py")
"""The files of the recorder whose functions run operations of their own, and none of the user's."""


def is_own(frame: FrameType | None) -> bool:
    """Return whether the recorder itself runs an operation, not user code or a library."""
    while frame is not None:
        if frame.f_code is Sink.guarded.__code__ or frame.f_code.co_filename in _OWN:
            return True
        if frames.is_user_code(frames.file_of(frame)):
            return False
        frame = frame.f_back
    return False


def _module(frame: FrameType | None) -> str:
    names: list[str] = []
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__call__" and code.co_filename.endswith(_LAYERS):
            name = getattr(frame.f_locals.get("self"), "name", None)
            names += [name] if isinstance(name, str) else []
        frame = frame.f_back
    return "/".join(reversed(names))


def _line(frame: FrameType | None) -> tuple[str, int]:
    frame = frames.user_frame(frame)
    while frame is not None and _GENERATED in frame.f_code.co_filename:
        frame = frames.user_frame(frame.f_back)
    return frames.location(frame) if frame is not None else ("", 0)


def _traced_line(operation: Any) -> tuple[str, int]:
    """Return the line of an operation in a graph, which TensorFlow maps from the code that AutoGraph generated."""
    for entry in reversed(operation.traceback):
        name = entry.filename
        if frames.is_user_code(name) and not name.startswith("<") and _GENERATED not in name:
            return name, entry.lineno
    return "", 0


class GraphNames:
    """Names graphs by their function and a number. TensorFlow's numbers depend on all graphs created before."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def of(self, graph: Any) -> str:
        """Return the name of a graph. It is the same in all runs that trace the same functions in the same order."""
        name: str | None = getattr(graph, "_detaudit_name", None)
        if name is None:
            plain = graph.name.rstrip("0123456789").rstrip("_") or "graph"
            number = self._counts[plain] = self._counts.get(plain, 0) + 1
            name = graph._detaudit_name = plain if number == 1 else f"{plain}.{number}"
        return name


class Places:
    """Finds the places of operations. An operation of a gradient has the place of its forward operation."""

    def __init__(self) -> None:
        self._eager: Any = importlib.import_module("tensorflow.python.framework.ops").EagerTensor
        self._tape: Any = importlib.import_module("tensorflow.python.eager.record").could_possibly_record
        self._modules: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
        self._made: dict[int, OperationPosition] = {}
        self._fed: dict[tuple[str, int], OperationPosition] = {}
        self._inside = threading.local()

    def watch_gradients(self) -> None:
        """Wrap the computation of gradients, to know which operation's gradient is being computed."""
        backprop: Any = importlib.import_module("tensorflow.python.eager.backprop")
        pywrap = importlib.import_module("tensorflow.python.pywrap_tfe")
        compute = backprop._gradient_function

        def gradient(op_name: str, attrs: Any, number: int, inputs: Any, outputs: Any, *args: Any) -> Any:
            before = getattr(self._inside, "forward", None)
            self._inside.forward = (op_name, inputs or (), outputs or ())  # None if the gradient does not need them
            try:
                return compute(op_name, attrs, number, inputs, outputs, *args)
            finally:
                self._inside.forward = before

        backprop._gradient_function = gradient
        pywrap.TFE_Py_RegisterGradientFunction(gradient)

    @property
    def in_gradient(self) -> bool:
        """Whether the gradient of an operation is being computed in this thread."""
        return getattr(self._inside, "forward", None) is not None

    def traced(self, operation: Any, frame: FrameType | None) -> OperationPosition:
        """Return the place of an operation that is being added to a graph."""
        forward = self._forward_operation() or operation._original_op
        if forward is not None:
            module = self._modules.get(forward.graph, {}).get(forward.name, "")
            file, line = _traced_line(forward)
            if file:
                return OperationPosition(file, line, module)
        module = _module(frame)
        if module:
            self._modules.setdefault(operation.graph, {})[operation.name] = module
        return OperationPosition(*_traced_line(operation), module)

    def ran(
        self, op_type: str, inputs: Sequence[Any], outputs: Sequence[Any], frame: FrameType | None
    ) -> OperationPosition:
        """Return the place of an operation that ran eagerly."""
        known = self._forward_place() if self.in_gradient else None
        if known is not None:
            return known
        position = OperationPosition(*_line(frame), _module(frame))
        if self._tape():
            if len(self._made) > _MOST_FORWARD:
                self.forget()
            self._made.update([(tensor._id, position) for tensor in outputs])
            self._fed.update([((op_type, tensor._id), position) for tensor in inputs])
        return position

    def forget(self) -> None:
        """Drop the places that were kept for later gradients."""
        self._made.clear()
        self._fed.clear()

    def _forward_operation(self) -> Any:
        op_name, inputs, outputs = getattr(self._inside, "forward", None) or ("", (), ())
        for tensor in outputs:
            if hasattr(tensor, "op") and not isinstance(tensor, self._eager):
                return tensor.op
        for tensor in inputs:
            if hasattr(tensor, "consumers") and not isinstance(tensor, self._eager):
                for consumer in tensor.consumers():
                    if consumer.type == op_name:
                        return consumer
        return None

    def _forward_place(self) -> OperationPosition | None:
        op_name, inputs, outputs = self._inside.forward
        made = [self._made.get(getattr(tensor, "_id", -1)) for tensor in outputs]
        fed = [self._fed.get((op_name, getattr(tensor, "_id", -1))) for tensor in inputs]
        return next((position for position in made + fed if position is not None), None)
