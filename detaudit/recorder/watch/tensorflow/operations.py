"""Record the operations of TensorFlow: eager ones at once, those of a graph by operations that are added after them."""

from __future__ import annotations

import importlib

from . import call, kinds, scalars
from .concurrent import ThreadCalls
from .places import is_own
from .runs import Runs, Site
from .variables import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from ..stream import OpStream
    from .calls import Call, Calls
    from .places import GraphNames, Places
    from .racing import Racing


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
        found: list[Callable[[], None] | None] = []
        if self._stream.open:
            self._guarded(self._variables.read_all_unknown)
            self._guarded(lambda: found.append(self._threads.around(call, arguments)))
        return lambda: self._guarded(found[0]) if found and found[0] else None

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
        frame: FrameType,
        attrs: Any = (),
    ) -> None:
        """Handle one operation. It runs eagerly if ``graph`` is None."""
        if not self._is_watched(op_type, inputs, graph) or is_own(frame):
            return
        handles = [tensor for tensor in inputs if tensor.dtype == self._tf.resource]
        writes = handles if kinds.WRITES_VARIABLE.match(op_type) else []
        reads = handles if writes or kinds.READS_VARIABLE.match(op_type) else []
        ins, outs = self._visible(inputs), self._visible(outputs)
        if not outs and not writes:
            return
        numbers = {id(handle): self._variables.number(handle) for handle in reads}
        if self._stream.open and not (graph is None and writes):  # an eager operation has written already
            for number in numbers.values():
                self._variables.read_unknown(number)
        found = () if op_type in kinds.ONLY_WRITES else tuple([numbers[id(handle)] for handle in reads])
        if graph is None:
            place = self._places.ran(op_type, ins, outs, frame)
            site = Site(op_type, place, backward=self._places.in_gradient, found=found)
            site = site._replace(numbers=scalars.places(ins, None), attributes=scalars.attributes(attrs))
            site = self._with_node(site, inputs, attrs, None)
            self._observe_eager(site, ins, outs, writes, numbers)
        else:
            operation = outputs[0].op if len(outputs) else graph.get_operation_by_name(name)
            node = operation.name
            site = Site(op_type, self._places.traced(operation, frame), self._names.of(graph), node, found=found)
            site = site._replace(numbers=scalars.places(ins, graph), attributes=scalars.attributes(attrs))
            site = self._with_node(site, inputs, attrs, operation)
            self._observe_in_graph(site, operation, ins, outs, writes, numbers)

    def _with_node(self, site: Site, inputs: Sequence[Any], attrs: Any, operation: Any) -> Site:
        if not self._stream.wanted.get("call"):
            return site
        return site._replace(node_to_save=call.node(site.op, inputs, attrs, operation))

    def _is_watched(self, op_type: str, inputs: Sequence[Any], graph: Any) -> bool:
        if graph is not None and not hasattr(graph, "control_outputs"):
            return False  # a graph of tf.compat.v1, where an added operation would not run unless it is fetched
        if self._racing_only and not self._racing.may(op_type, graph, inputs):
            return False
        if op_type in kinds.SOURCES:
            return graph is not None or op_type != "OptionalGetValue"
        if op_type in kinds.PLUMBING or op_type.startswith("__") or "Dataset" in op_type or "Iterator" in op_type:
            return False
        # An operation that takes a value out of a list or an optional did not compute that value.
        return not any(tensor.dtype == self._tf.variant for tensor in inputs) and not op_type.startswith("TensorArray")

    def _visible(self, tensors: Sequence[Any]) -> list[Any]:
        return [tensor for tensor in tensors if tensor.dtype.name in kinds.DTYPES]

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
            after = [latest[number] for number in {*site.found, *site.written} - {UNKNOWN} if number in latest]
            with self._tf.control_dependencies([operation, *after]):
                ours = self._numpy_function(observed, [*ins, *made], [])
            latest.update([(number, ours) for number in {*site.found, *site.written} - {UNKNOWN}])
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
            random=kinds.RANDOM.match(site.op) is not None,
        )
