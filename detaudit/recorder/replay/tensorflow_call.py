"""A call of an operation of TensorFlow that was saved, made again in a graph of its own."""

from __future__ import annotations

import importlib
import os
import random

from ..frameworks.tensorflow.reader import TensorFlowReader
from ..training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NODE = "replayed"


class Call:
    """Makes the call again; before each, its variables are set to what they were."""

    def __init__(self, call: dict[str, Any], folder: str, condition: dict[str, Any]) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        tf = self._tf = importlib.import_module("tensorflow")
        self._np: Any = importlib.import_module("numpy")
        settings, threads = call["settings"], tf.config.threading
        threads.set_intra_op_parallelism_threads(condition["threads"] or settings["intra"])
        threads.set_inter_op_parallelism_threads(condition["threads"] or settings["inter"])
        if condition["deterministic"] or settings["deterministic"]:
            tf.config.experimental.enable_op_determinism()
        self._reader, self._place = TensorFlowReader(), condition["place"]
        self._inputs = call["inputs"]
        arrays = [self._loaded(os.path.join(folder, one["file"]), one) for one in self._inputs]
        self._values = [tf.constant(array) for array in arrays]
        indices = [index for index in range(len(arrays)) if self._is_held(index)]
        self._variables = {index: tf.Variable(self._values[index]) for index in indices}
        self._function = tf.function(self._run, autograph=False)
        self._message = self._graph(call["node"])
        self.threads = int(condition["threads"] or settings["intra"] or os.cpu_count() or 0)
        self.may_differentiate = not call["backward"] and not self._variables
        self._upstream: list[Any] = []

    def _is_held(self, index: int) -> bool:
        return bool(self._inputs[index]["kind"] == "variable")

    def _loaded(self, path: str, saved: dict[str, Any]) -> Any:
        with open(path, "rb") as file:
            data = file.read()
        dtype = self._tf.dtypes.as_dtype(saved["dtype"]).as_numpy_dtype
        return self._np.frombuffer(data, dtype=dtype).reshape(saved["shape"])

    def _graph(self, text: str) -> Any:
        """Return a graph with the operation, and a placeholder for each of its inputs."""
        tf = self._tf
        graph = tf.compat.v1.GraphDef()
        graph.versions.producer = tf.version.GRAPH_DEF_VERSION
        for index, value in enumerate(self._values):
            holder = graph.node.add(op="Placeholder", name="in%d" % index)
            dtype = tf.resource if self._is_held(index) else value.dtype
            holder.attr["dtype"].type = dtype.as_datatype_enum
        node = graph.node.add()
        importlib.import_module("google.protobuf.text_format").Parse(text, node)
        node.name, node.device = _NODE, ""
        del node.input[:]
        node.input.extend(["in%d" % index for index in range(len(self._values))])
        for name in [name for name in node.attr if name.startswith("_")]:
            del node.attr[name]  # such as the name of its class of gradients
        return graph

    def _run(self, *values: Any) -> Any:
        """Return the results of the operation, then the variables."""
        tf = self._tf
        capture = tf.compat.v1.get_default_graph().capture
        handles = {index: capture(variable.handle) for index, variable in self._variables.items()}
        inputs = {"in%d" % index: handles.get(index, value) for index, value in enumerate(values)}
        (operation,) = tf.graph_util.import_graph_def(
            self._message,
            input_map={f"{name}:0": one for name, one in inputs.items()},
            return_elements=[_NODE],
            name="",
        )
        with tf.control_dependencies([operation]):
            left = [variable.read_value() for variable in self._variables.values()]
        return [*operation.outputs, *left]

    def _seed(self) -> None:
        random.seed(0)
        self._np.random.seed(0)
        self._tf.random.set_seed(0)
        for index, variable in self._variables.items():
            variable.assign(self._values[index])

    def own(self) -> str:
        """Make the call, and return the digest of the result at the place where two runs differed."""
        self._seed()
        results = self._function(*self._values)
        return self._digest(results[self._place : self._place + 1] or results)

    def gradient(self) -> str | None:
        """Make the call and its backward pass, and return the digest of the gradients, None if it has none."""
        tf = self._tf
        self._seed()
        inputs = [value for value in self._values if value.dtype.is_floating or value.dtype.is_complex]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            try:
                outs = [one for one in self._function(*self._values) if one.dtype.is_floating or one.dtype.is_complex]
            except LookupError:  # no gradient is defined
                return None
        self._upstream = self._upstream or [self._given(one) for one in outs]
        try:
            gradients = [one for one in tape.gradient(outs, inputs, self._upstream) if one is not None]
        except LookupError:
            return None
        return self._digest([tf.convert_to_tensor(one) for one in gradients]) if gradients else None

    def _given(self, out: Any) -> Any:
        """Return a gradient of an output: random numbers, because sums of ones do not round."""
        numbers = self._np.random.RandomState(0).standard_normal(out.shape)
        return self._tf.cast(self._tf.constant(numbers), out.dtype)

    def _digest(self, tensors: list[Any]) -> str:
        return digest.of_parts([self._reader.part(str(index), one) for index, one in enumerate(tensors)])

    def fill(self, byte: int) -> None:
        """Fill nothing else: glibc allocates the memory of TensorFlow's CPU device."""
