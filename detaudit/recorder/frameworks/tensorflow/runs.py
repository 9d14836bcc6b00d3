"""One run of an operation: the values of its inputs and variables, and calls that are saved."""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
import weakref
from types import MappingProxyType
from typing import NamedTuple

from .... import private
from ...process import threads
from .places import Calls, OperationPosition
from .reader import TensorFlowReader

# Classify TensorFlow's operations by type: which to leave out, which use variables, and which race in parallel.


PLUMBING = frozenset(
    (
        *("Const", "Placeholder", "PlaceholderWithDefault", "NoOp", "Assert", "Identity", "IdentityN", "StopGradient"),
        *(
            "Enter",
            "Exit",
            "LoopCond",
            "Merge",
            "NextIteration",
            "Switch",
            "If",
            "StatelessIf",
            "Case",
            "StatelessCase",
        ),
        *("While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient"),
        *("VarHandleOp", "VarIsInitializedOp", "VariableShape", "DestroyResourceOp", "TensorListReserve"),
        *("Shape", "ShapeN", "Rank", "Size", "Cast", "Reshape", "ExpandDims", "Squeeze", "Fill", "ZerosLike"),
        *("OnesLike", "StridedSlice", "Pack", "BroadcastGradientArgs"),
    )
)
"""Operations that are never recorded: control flow, constants, and those that only reshape or count."""

SOURCES = frozenset(
    (
        *("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional", "OptionalGetValue"),
        *("DatasetToSingleElement", "ReduceDataset"),
    )
)
"""Operations that read data. They have no inputs, because they do not read from a tensor.

Outside of graphs, an optional holds results of functions, such as the losses of Keras.
"""

DTYPES = frozenset(
    (
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "string"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
)
"""Dtypes that NumPy can read."""

READS_VARIABLE = re.compile(r"(ReadVariableOp|ResourceGather|ResourceGatherNd|ResourceStridedSlice)$")

WRITES_VARIABLE = re.compile(
    r"(Assign(Add|Sub)?VariableOp|Resource(Scatter|Apply|SparseApply)\w+|ResourceStridedSliceAssign"
    r"|ResourceCountUpTo|Stateful(?!Partitioned)\w+|Rng(Skip|ReadAndSkip))$"
)

ONLY_WRITES = frozenset(("AssignVariableOp",))
"""Operations whose result does not depend on the previous value of the variable."""

RANDOM = re.compile(
    r"(RandomStandardNormal|RandomUniform(Int)?|(Parameterized)?TruncatedNormal|Multinomial|RandomShuffle|RandomGamma"
    r"|RandomPoisson(V2)?|Stateful(?!Partitioned)\w+|Rng(Skip|ReadAndSkip)|NonDeterministicInts|SampleDistorted\w+"
    r"|Fractional(Avg|Max)Pool)$"
)
"""Operations that draw random numbers from their own state or from a generator."""

RACES_IN_PARALLEL = re.compile(RANDOM.pattern + r"|(Eager)?PyFunc(Stateless)?$")
"""Operations that are repeatable in sequence, but not in functions of tf.data or in parallel iterations."""


# Save a call of an operation of TensorFlow, so that it can be repeated in another process: its node and its inputs.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ...process.stream import OpStream


VARIABLE, VALUE = "variable", "value"
_OF_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc", "NumpyFunction")


class Node(NamedTuple):
    """An operation without its inputs: the message NodeDef as text, and for each input VARIABLE or VALUE.

    ``obstacle`` says why it cannot be repeated, see recorder/replay; ``detail`` is the type of the input, or the error.
    """

    op: str = ""
    text: str = ""
    inputs: tuple[str, ...] = ()
    obstacle: str = ""
    detail: str = ""


def node(op_type: str, inputs: Sequence[Any], attrs: Any, operation: Any) -> Node:
    """Return an operation of a graph, or if ``operation`` is None, an eager one with these attributes."""
    if op_type in _OF_PYTHON:
        return Node(op_type, obstacle="library", detail=op_type)
    kinds = []
    for tensor in inputs:
        dtype = tensor.dtype.name
        if dtype != "resource" and (dtype not in DTYPES or dtype == "string"):
            return Node(op_type, obstacle="argument", detail=dtype)
        kinds.append(VARIABLE if dtype == "resource" else VALUE)
    try:
        message = operation.node_def if operation is not None else _eager(op_type, attrs)
    except Exception as error:
        return Node(op_type, obstacle="argument", detail=repr(error)[:200])
    return Node(op_type, str(message), tuple(kinds))


def _eager(op_type: str, attrs: Any) -> Any:
    """Return the message of an eager operation, whose attributes are plain values in turn with their names."""
    framework = "tensorflow.python.framework."
    definition = importlib.import_module(framework + "op_def_registry").get(op_type)
    encoded = importlib.import_module(framework + "op_def_library").value_to_attr_value
    message = importlib.import_module("tensorflow.core.framework.node_def_pb2").NodeDef(op=op_type)
    kinds = {one.name: one.type for one in definition.attr}
    for name, value in zip(attrs[::2], attrs[1::2]):
        message.attr[name].CopyFrom(encoded(value, kinds[name], name))
    return message


def save(
    stream: OpStream, operation: Node, values: Sequence[Any], states: Sequence[Any], *, random: bool, backward: bool
) -> None:
    """Write a line ``call`` with the arrays of its inputs; ``states`` are those of variables, None if unknown."""
    obstacle, detail = ("random", "") if random else (operation.obstacle, operation.detail)
    of_variables, of_values = list(states), list(values)
    unknown = len(of_variables) != operation.inputs.count(VARIABLE) or any(one is None for one in of_variables)
    obstacle = obstacle or ("variable" if unknown else "")
    arrays = [] if obstacle else [(of_variables if kind == VARIABLE else of_values).pop(0) for kind in operation.inputs]
    if sum(array.nbytes for array in arrays) > int(stream.request["call"]):
        obstacle = "too-large"
    if obstacle:
        stream.write("call", framework="tensorflow", op=operation.op, obstacle=obstacle, detail=detail)
        return
    inputs = [
        {
            "kind": kind,
            "file": stream.save("storage%d" % index, array.tobytes()),
            "dtype": str(array.dtype),
            "shape": list(array.shape),
        }
        for index, (kind, array) in enumerate(zip(operation.inputs, arrays))
    ]
    tf: Any = sys.modules["tensorflow"]
    threads = tf.config.threading
    stream.write(
        "call", framework="tensorflow", op=operation.op, backward=backward, node=operation.text, inputs=inputs,
        settings={
            "intra": threads.get_intra_op_parallelism_threads(),
            "inter": threads.get_inter_op_parallelism_threads(),
            "deterministic": _is_deterministic(),
        },
        python=sys.executable, path=list(sys.path),
    )  # fmt: skip


def _is_deterministic() -> bool:
    context: Any = importlib.import_module("tensorflow.python.framework.config")
    return bool(context.is_op_determinism_enabled())


# Number TensorFlow's variables, and keep the last known value of each.


UNKNOWN = -1
"""The number of a variable that cannot be identified, such as one that is passed to a tf.function as an argument."""


class State(NamedTuple):
    """The value of a variable: its digest, and the array itself if that is kept."""

    digest: str
    array: Any


class Variables:
    """Numbers the variables by first appearance, and keeps their values between operations.

    To read a value before an operation, another operation would have to be inserted earlier in the graph. Instead, the
    last known value is used: after each recorded operation, the variables that it wrote to are read back.
    """

    def __init__(self, state: Callable[[Any], State]) -> None:
        self._state = state
        self._ops: Any = importlib.import_module("tensorflow.python.framework.ops")
        self._dtypes: Any = importlib.import_module("tensorflow.python.framework.dtypes")
        self._record: Any = importlib.import_module("tensorflow.python.eager.record")
        self._read: Any = importlib.import_module("tensorflow.python.ops.gen_resource_variable_ops").read_variable_op
        self._data: Any = importlib.import_module("tensorflow.python.ops.handle_data_util").get_handle_data
        self._numbers: dict[int, int] = {}
        self._handles: list[Callable[[], Any]] = []
        self.states: dict[int, State] = {}

    def number(self, handle: Any) -> int:
        """Return the number of the variable with this handle, even if a function captured the handle."""
        while not isinstance(handle, self._ops.EagerTensor):
            outside = [outer for outer, inner in getattr(handle.graph, "captures", ()) if inner is handle]
            if not outside:
                return UNKNOWN
            handle = outside[0]
        if handle._id not in self._numbers:
            self._numbers[handle._id] = len(self._handles)
            self._handles.append(weakref.ref(handle))
        return self._numbers[handle._id]

    def read(self, handle: Any) -> Any:
        """Read a variable, in a graph by adding an operation to it. Return None if this is not a variable."""
        data = self._data(handle)
        if data is None or not data.is_set or len(data.shape_and_type) != 1:
            return None
        with self._record.stop_recording():
            return self._read(handle, self._dtypes.as_dtype(data.shape_and_type[0].dtype))

    def read_unknown(self, number: int) -> None:
        """Read the value of a variable, unless it is known."""
        handle = self._handles[number]() if number != UNKNOWN and number not in self.states else None
        if handle is None:
            return
        try:
            with self._ops.init_scope():
                value = self.read(handle)
                if value is not None:
                    self.states[number] = self._state(value.numpy())
        except self._errors():  # not initialized yet
            pass

    def read_all_unknown(self) -> None:
        """Read the unknown values of all variables that have a number."""
        for number in range(len(self._handles)):
            self.read_unknown(number)

    def _errors(self) -> Any:
        return importlib.import_module("tensorflow.python.framework.errors_impl").OpError


# Write the inputs and outputs of an operation of TensorFlow each time it runs inside the window.


class Site(NamedTuple):
    """An operation in a graph, or an eager one, whose ``graph`` and ``node`` are "" then."""

    op: str
    position: OperationPosition
    graph: str = ""
    node: str = ""
    backward: bool = False
    random: bool = False
    read: tuple[int, ...] = ()
    """The variables whose value affects its result."""
    written: tuple[int, ...] = ()
    """The variables that it writes to. They are read back, as the last of its outputs."""
    numbers: tuple[int, ...] = ()
    """The places of its inputs that are numbers from Python."""
    attributes: Mapping[str, str] = MappingProxyType({})
    node_to_save: Node = Node()
    """The operation itself, if the call is to be saved."""


class Runs:
    """Writes a line for each run of an operation. TensorFlow's threads may call this at the same time."""

    def __init__(self, stream: OpStream, calls: Calls) -> None:
        self._stream, self._calls = stream, calls
        self._reader = TensorFlowReader()
        self._keeps = stream.level == "tensors"
        self.variables = Variables(self._state)
        self._lock = threading.RLock()
        self._counts: dict[str, int] = {}
        stream.when_open(self._opened)

    def _opened(self, _: bool) -> None:
        with self._lock:
            self._counts.clear()
            self.forget()

    def forget(self) -> None:
        """Forget the values of the variables."""
        with self._lock:
            self.variables.states.clear()

    def ran(self, site: Site, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        """Record an operation that just ran. This never raises, because the user's graph calls it."""
        if not self._stream.open:
            return
        try:
            with self._lock:
                self._ran(site, ins, outs)
        except Exception as error:
            self._stream.trouble("operation", error)

    def _ran(self, site: Site, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        if site.node:
            call = self._calls.current
            if not call.alone:
                self.forget()
                return
            thread, key = call.thread, self._calls.key(site.graph, site.node)
        else:
            thread, key = threads.name_of_lane(), ""
        count = self._counts.get(thread, 0)
        if not key:
            self._counts[thread] = count + 1
        if not self._keeps:
            self._write(site, thread, key, ins, outs)
        elif key == self._stream.request.get("key") if key else self._is_wanted(thread, count):
            self._keep(site, ins, outs)
        elif site.written:
            self._written(site, [self._state(array) for array in outs[-len(site.written) :]])

    def _is_wanted(self, thread: str, count: int) -> bool:
        request = self._stream.request
        return not request.get("key") and request.get("thread") == thread and request.get("n") == count

    def _write(self, site: Site, thread: str, key: str, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        made = [self._state(array) for array in outs]
        came = [[self._found(number, site, made), number] for number in site.read]
        came += [[self.digest(array), -1] for array in ins]
        self._written(site, made[len(made) - len(site.written) :])
        storages = [-1] * (len(made) - len(site.written)) + list(site.written)
        fields: dict[str, Any] = {
            "n": self._stream.next_number(),
            "thread": thread,
            # An eager operation that writes to a variable comes after the loss of its step.
            "step": self._stream.step(bool(not key and site.written)),
            "op": site.op,
            "ins": came,
            "outs": [[state.digest, storage, True] for state, storage in zip(made, storages)],
            "file": site.position.file,
            "line": site.position.line,
        }
        more = {
            "key": key,
            "node": site.node,
            "module": site.position.module,
            "backward": site.backward,
            "random": site.random,
            "scalars": {**{str(len(site.read) + n + 1): _text(ins[n]) for n in site.numbers}, **site.attributes},
        }
        self._stream.write("op", **fields, **{name: value for name, value in more.items() if value})

    def _found(self, number: int, site: Site, made: list[State]) -> str:
        """Return the digest of a variable before the operation; if unknown, of the value that the operation read."""
        state = self.variables.states.get(number)
        if state is None and site.op == "ReadVariableOp":
            state = made[0]
        return state.digest if state is not None else ""

    def _written(self, site: Site, states: Sequence[State]) -> None:
        for number, state in zip(site.written, states):
            if number != UNKNOWN:
                self.variables.states[number] = state

    def _keep(self, site: Site, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        before = [self.variables.states.get(number) for number in site.read]
        states = [state.array if state is not None else None for state in before]
        if self._stream.request.get("call"):
            values = [self._reader.array(tensor) for tensor in ins]
            save(self._stream, site.node_to_save, values, states, random=site.random, backward=site.backward)
        came = states + list(ins)
        for side, arrays in (("in", came), ("out", list(outs))):
            for index, array in enumerate(arrays):
                if array is not None:
                    self._keep_tensor(side + str(index), array)

    def _keep_tensor(self, role: str, tensor: Any) -> None:
        array = self._reader.array(tensor)
        path = self._stream.path(f".{role}.bin")
        with open(path, "wb", opener=private.opener) as file:
            file.write(self._reader.raw(array).tobytes())
        self._stream.write(
            "tensor",
            role=role,
            digest=self.digest(array),
            dtype=str(array.dtype),
            shape=list(array.shape),
            file=os.path.basename(path),
        )

    def _state(self, tensor: Any) -> State:
        array = self._reader.array(tensor)
        # The array may be a view of the variable's memory.
        return State("", array.copy()) if self._keeps else State(self.digest(array), None)

    def digest(self, tensor: Any) -> str:
        """Return the dtype, shape and digest of a tensor or an array."""
        _, dtype, shape, words = self._reader.part("", tensor)
        return "%s[%s]:%016x" % (dtype, ",".join([str(size) for size in shape]), words)


def _text(number: Any) -> str:
    """Return a tensor or an array without dimensions as text, with as many digits as its dtype needs."""
    return str(number.numpy() if hasattr(number, "numpy") else number)
