"""Record every operation of TensorFlow in a window of steps, and those that may race."""

from __future__ import annotations

import functools
import importlib
import sys
import threading

from .... import wire
from ...process import threads
from ...process.threads import enter_in_threads
from ...randomness import tensorflow
from . import runs
from .places import Calls, GraphNames, Places, is_own
from .runs import UNKNOWN, Runs, Site

# Record calls of tf.functions by threads of the script, with the variables before and after each call.
#
# While several threads are inside functions, an operation cannot be assigned to one of them. So each call is recorded
# as one operation.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType, ModuleType
    from typing import Any

    from ...process.stream import OpStream
    from .places import Call


class ThreadCalls:
    """Writes a line for each outermost call inside the window, except calls of the main thread."""

    def __init__(self, stream: OpStream, runs: Runs, places: Places) -> None:
        self._stream, self._runs, self._places = stream, runs, places
        self._flatten: Any = importlib.import_module("tensorflow.python.util.nest").flatten

    def around(self, call: Call, arguments: Any) -> Callable[[], None] | None:
        """Digest the arguments and the variables before a call. Return a function that writes the line after it."""
        if call.thread == wire.MAIN_THREAD or self._stream.level != "ops":
            return None
        position = self._places.ran("", (), (), sys._getframe().f_back)
        argument_digests = [self._runs.digest(value) for value in self._flatten(arguments) if hasattr(value, "shape")]
        digests_before = self._digests()
        step = self._stream.step(False)

        def after() -> None:
            self._runs.forget()
            self._runs.variables.read_all_unknown()
            left = self._digests()
            shared = [] if call.alone else sorted(left)
            self._stream.write(
                "op",
                n=self._stream.next_number(),
                thread=call.thread,
                step=step,
                op="tf.function",
                ins=[
                    *([text, -1] for text in argument_digests),
                    *([digests_before.get(number, ""), number] for number in sorted(left)),
                ],
                outs=[
                    [text, number, True] for number, text in sorted(left.items()) if text != digests_before.get(number)
                ],
                file=position.file,
                line=position.line,
                **({"shared": shared} if shared else {}),
            )

        return after

    def _digests(self) -> dict[int, str]:
        return {number: state.digest for number, state in self._runs.variables.states.items()}


# Find the numbers that an operation of TensorFlow is given: constants, and attributes such as ``alpha``.


def places(ins: Sequence[Any], graph: Any) -> tuple[int, ...]:
    """Return which inputs without dimensions come from Python: in a graph, its constants and its own inputs.

    An eager operation does not know where its inputs come from, so all of them count.
    """
    inner = graph is not None and hasattr(getattr(graph, "outer_graph", None), "outer_graph")
    outside = ("Const",) if inner else ("Const", "Placeholder")
    return tuple(
        [
            index
            for index, tensor in enumerate(ins)
            if tensor.shape.rank == 0 and tensor.dtype.name != "string" and (graph is None or tensor.op.type in outside)
        ]
    )


def attributes(attrs: Any) -> dict[str, str]:
    """Return the attributes that are floats, by name: values in an eager operation, messages in a graph."""
    return dict(_floats(attrs or ()))


def _floats(attrs: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for name, value in zip(attrs[::2], attrs[1::2]):
        if type(value) is float:
            yield str(name), repr(value)
        elif hasattr(value, "WhichOneof") and value.WhichOneof("value") == "f":
            yield str(name), repr(value.f)


# Record the operations of TensorFlow: eager ones at once, those of a graph by operations that are added after them.


class Operations:
    """Handles each operation when it runs eagerly, and when it is added to a graph."""

    def __init__(
        self, tf: Any, stream: OpStream, calls: Calls, racing: Racing, places: Places, names: GraphNames
    ) -> None:
        self._tf, self._stream, self._racing = tf, stream, racing
        self._racing_only = stream.level == "racing"
        self._runs = Runs(stream, calls)
        self._variables = self._runs.variables
        self._places, self._names = places, names
        self._threads = ThreadCalls(stream, self._runs, places)
        self._record: Any = importlib.import_module("tensorflow.python.eager.record")
        self._numpy_function: Any = importlib.import_module("tensorflow.python.ops.script_ops").numpy_function
        places.watch_gradients()
        stream.when_open(lambda _: places.forget())

    def around_call(self, call: Call, arguments: Any) -> Callable[[], None]:
        """Read the variables with unknown values before an outermost call. Return a function to call after it."""
        callbacks: list[Callable[[], None] | None] = []
        if self._stream.open:
            self._guarded(self._variables.read_all_unknown)
            self._guarded(lambda: callbacks.append(self._threads.around(call, arguments)))
        return lambda: self._guarded(callbacks[0]) if callbacks and callbacks[0] else None

    def _guarded(self, observe: Callable[[], object]) -> None:
        try:
            observe()
        except Exception as error:
            self._stream.trouble("variables", error)

    def handle(
        self,
        op_type: str,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        name: str,
        graph: Any,
        frame: FrameType | None,
        attrs: Any = (),
    ) -> None:
        """Handle one operation. It runs eagerly if ``graph`` is None."""
        if not self._is_watched(op_type, inputs, graph) or is_own(frame):
            return
        handles = [tensor for tensor in inputs if tensor.dtype == self._tf.resource]
        writes = handles if runs.WRITES_VARIABLE.match(op_type) else []
        reads = handles if writes or runs.READS_VARIABLE.match(op_type) else []
        ins, outs = self._visible(inputs), self._visible(outputs)
        if not outs and not writes:
            return
        numbers = {id(handle): self._variables.number(handle) for handle in reads}
        if self._stream.open and not (graph is None and writes):  # an eager operation has written already
            for number in numbers.values():
                self._variables.read_unknown(number)
        read_numbers = () if op_type in runs.ONLY_WRITES else tuple([numbers[id(handle)] for handle in reads])
        if graph is None:
            position = self._places.ran(op_type, ins, outs, frame)
            site = Site(op_type, position, backward=self._places.in_gradient, read=read_numbers)
            site = site._replace(numbers=places(ins, None), attributes=attributes(attrs))
            site = self._with_node(site, inputs, attrs, None)
            self._observe_eager(site, ins, outs, writes, numbers)
        else:
            operation = outputs[0].op if len(outputs) else graph.get_operation_by_name(name)
            node = operation.name
            site = Site(op_type, self._places.traced(operation, frame), self._names.of(graph), node, read=read_numbers)
            site = site._replace(numbers=places(ins, graph), attributes=attributes(attrs))
            site = self._with_node(site, inputs, attrs, operation)
            self._observe_in_graph(site, operation, ins, outs, writes, numbers)

    def _with_node(self, site: Site, inputs: Sequence[Any], attrs: Any, operation: Any) -> Site:
        if not self._stream.request.get("call"):
            return site
        return site._replace(node_to_save=runs.node(site.op, inputs, attrs, operation))

    def _is_watched(self, op_type: str, inputs: Sequence[Any], graph: Any) -> bool:
        if graph is not None and not hasattr(graph, "control_outputs"):
            return False  # a graph of tf.compat.v1, where an added operation would not run unless it is fetched
        if self._racing_only and not self._racing.may(op_type, graph, inputs):
            return False
        if op_type in runs.SOURCES:
            return graph is not None or op_type != "OptionalGetValue"
        if op_type in runs.PLUMBING or op_type.startswith("__") or "Dataset" in op_type or "Iterator" in op_type:
            return False
        # An operation that takes a value out of a list or an optional did not compute that value.
        return not any(tensor.dtype == self._tf.variant for tensor in inputs) and not op_type.startswith("TensorArray")

    def _visible(self, tensors: Sequence[Any]) -> list[Any]:
        return [tensor for tensor in tensors if tensor.dtype.name in runs.DTYPES]

    def _observe_eager(
        self, site: Site, ins: list[Any], outs: list[Any], writes: list[Any], numbers: dict[int, int]
    ) -> None:
        back = [(numbers[id(handle)], self._variables.read(handle)) for handle in writes]
        back = [(number, value) for number, value in back if value is not None]
        site = self._completed(site, [number for number, _ in back])
        self._runs.ran(site, ins, [*outs, *[value for _, value in back]])

    def _observe_in_graph(
        self, site: Site, operation: Any, ins: list[Any], outs: list[Any], writes: list[Any], numbers: dict[int, int]
    ) -> None:
        graph = operation.graph
        with self._record.stop_recording(), graph.as_default(), self._tf.name_scope("detaudit"), self._tf.device(None):
            with self._tf.control_dependencies([operation]):
                back = [(numbers[id(handle)], self._variables.read(handle)) for handle in writes]
            back = [(number, value) for number, value in back if value is not None]
            if not outs and not back:
                return
            site = self._completed(site, [number for number, _ in back])
            made = [*outs, *[value for _, value in back]]

            def observed(*arrays: Any) -> None:
                self._runs.ran(site, arrays[: len(ins)], arrays[len(ins) :])

            # Read a variable in the order in which it is used.
            latest: dict[int, Any] = getattr(graph, "_detaudit_latest", {})
            graph._detaudit_latest = latest
            after = [latest[number] for number in {*site.read, *site.written} - {UNKNOWN} if number in latest]
            with self._tf.control_dependencies([operation, *after]):
                ours = self._numpy_function(observed, [*ins, *made], [])
            latest.update([(number, ours) for number in {*site.read, *site.written} - {UNKNOWN}])
        self._let_run(graph, ours)

    @staticmethod
    def _let_run(graph: Any, operation: Any) -> None:
        """Make an operation run with its graph, without ordering it among the user's stateful operations."""
        manager = getattr(graph, "experimental_acd_manager", None)
        if manager is not None:
            manager.run_independently(operation)
        else:
            graph.control_outputs.append(operation)

    def _completed(self, site: Site, written: Sequence[int]) -> Site:
        backward = site.backward or self._places.in_gradient or "gradient_tape/" in site.node
        backward = backward or site.graph.startswith("__backward_")
        return site._replace(
            written=tuple(written),
            backward=backward or site.op.endswith("Grad"),
            random=runs.RANDOM.match(site.op) is not None,
        )


# Decide which operations of TensorFlow may race: those known to, and those that are repeatable only in sequence.


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
        return bool(parallel) and runs.RACES_IN_PARALLEL.match(op_type) is not None

    def watch_data(self, module: ModuleType) -> None:
        """Wrap the tracing of functions for tf.data. ``module`` is ``structured_function``."""
        wrapper: Any = module.StructuredFunctionWrapper
        make, local = wrapper.__init__, self._local

        @functools.wraps(make)
        def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:
            parallel = _calls_in_parallel(sys._getframe().f_back)
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
    return tensorflow.keeps_order() or (len(inputs) > 0 and tensorflow.is_one(inputs[-1]))


def _calls_in_parallel(frame: FrameType | None) -> bool:
    """Return whether the constructor of a dataset traces a function that is then called several times at once."""
    if tensorflow.keeps_order() or frame is None:
        return False
    frame_locals, absent = frame.f_locals, object()
    calls = frame_locals.get(tensorflow.PARALLEL, absent)
    return not tensorflow.is_one(calls) and (
        calls is not absent or "Parallel" in type(frame_locals.get("self")).__name__
    )


# List the operations of TensorFlow that may race when they are traced, without changing a graph.


class Scan:
    """Writes a line without inputs and outputs for each such operation of a graph, and for each line of eager code."""

    def __init__(self, stream: OpStream, racing: Racing, places: Places, names: GraphNames) -> None:
        self._stream, self._racing, self._places, self._names = stream, racing, places, names
        self._known: set[tuple[str, str, int]] = set()

    def handle(
        self,
        op_type: str,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        name: str,
        graph: Any,
        frame: FrameType | None,
        attrs: Any = (),
    ) -> None:
        """Handle one operation. It runs eagerly if ``graph`` is None."""
        if not self._racing.may(op_type, graph, inputs) or is_own(frame):
            return
        if graph is None:
            position = self._places.ran(op_type, inputs, outputs, frame)
            if (op_type, position.file, position.line) in self._known:
                return
            self._known.add((op_type, position.file, position.line))
            node = key = ""
        else:
            operation = outputs[0].op if len(outputs) else graph.get_operation_by_name(name)
            position, node = self._places.traced(operation, frame), operation.name
            key = f"{self._names.of(graph)}/{node}"
        self._write(op_type, position, {"key": key, "node": node, "module": position.module})

    def _write(self, op_type: str, position: Any, more: dict[str, str]) -> None:
        fields: dict[str, Any] = {name: value for name, value in more.items() if value}
        if runs.RANDOM.match(op_type):
            fields["random"] = True
        self._stream.write(
            "op",
            n=self._stream.next_number(),
            thread=threads.name_of_lane(),
            step=self._stream.step(False),
            op=op_type,
            ins=[],
            outs=[],
            listed=True,
            file=position.file,
            line=position.line,
            **fields,
        )


# Hook every operation of TensorFlow, eager or in the graph of a tf.function, while the window is open.
#
# After each operation in a graph, the recorder adds an operation that gets its inputs and outputs, and records them if
# the window is open. The results of user code do not change, but it runs more slowly, and operations are not fused. XLA
# cannot compile the added operations, so ``jit_compile`` is off in an instrumented run. In functions of tf.data,
# operations that may race are only listed; the results of tf.data are recorded. Graphs of tf.compat.v1 are not
# recorded.
#
# At the level ``modules`` no graph is changed: operations that may race are listed when they are traced. At the level
# ``racing``, operations are added only after those that may race, which is less likely to hide a race. At the level
# ``tensors``, ``n`` counts the eager operations of a thread, which have no key.


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
            handle(kind, inputs, outputs, name, graph, sys._getframe().f_back, attrs)
        except Exception as error:
            self._stream.trouble("operation", error)
        finally:
            inside.busy = False


def install(module: ModuleType, stream: OpStream) -> None:
    """Record the operations of this TensorFlow as the level of ``stream`` requests."""
    if stream.level in ("ops", "racing", "tensors", "modules"):
        OperationWatcher(module, stream).install()
