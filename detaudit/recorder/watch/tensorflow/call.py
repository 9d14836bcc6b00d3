"""Save a call of an operation of TensorFlow, so that it can be repeated in another process: its node and its inputs."""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

from .kinds import DTYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..stream import OpStream

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
    found = []
    for tensor in inputs:
        dtype = tensor.dtype.name
        if dtype != "resource" and (dtype not in DTYPES or dtype == "string"):
            return Node(op_type, obstacle="argument", detail=dtype)
        found.append(VARIABLE if dtype == "resource" else VALUE)
    try:
        message = operation.node_def if operation is not None else _eager(op_type, attrs)
    except Exception as error:
        return Node(op_type, obstacle="argument", detail=repr(error)[:200])
    return Node(op_type, str(message), tuple(found))


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
    stream: OpStream, found: Node, values: Sequence[Any], states: Sequence[Any], *, random: bool, backward: bool
) -> None:
    """Write a line ``call`` with the arrays of its inputs; ``states`` are those of variables, None if unknown."""
    obstacle, detail = ("random", "") if random else (found.obstacle, found.detail)
    of_variables, of_values = list(states), list(values)
    unknown = len(of_variables) != found.inputs.count(VARIABLE) or any(one is None for one in of_variables)
    obstacle = obstacle or ("variable" if unknown else "")
    arrays = [] if obstacle else [(of_variables if kind == VARIABLE else of_values).pop(0) for kind in found.inputs]
    if sum(array.nbytes for array in arrays) > int(stream.wanted["call"]):
        obstacle = "too-large"
    if obstacle:
        stream.write("call", framework="tensorflow", op=found.op, obstacle=obstacle, detail=detail)
        return
    inputs = [
        {
            "kind": kind,
            "file": stream.save("storage%d" % place, array.tobytes()),
            "dtype": str(array.dtype),
            "shape": list(array.shape),
        }
        for place, (kind, array) in enumerate(zip(found.inputs, arrays))
    ]
    tf: Any = sys.modules["tensorflow"]
    threads = tf.config.threading
    stream.write(
        "call", framework="tensorflow", op=found.op, backward=backward, node=found.text, inputs=inputs,
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
