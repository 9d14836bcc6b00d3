"""Read TensorFlow's variables and eager tensors through NumPy."""

from __future__ import annotations

import functools
import importlib
import math
import re

from ...training import digest
from ...training.digest import FrameworkReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class TensorFlowReader(FrameworkReader):
    """Reads variables, eager tensors and NumPy arrays."""

    def __init__(self) -> None:
        self._np: Any = importlib.import_module("numpy")  # installed, since TensorFlow needs it
        self._digest = digest.NumpyDigest(self._np)
        operations = "tensorflow.python.ops."
        self._plain = importlib.import_module(operations + "resource_variable_ops").ResourceVariable
        self._names: dict[Any, str] = {}
        self._variable = importlib.import_module(operations + "resource_variable_ops").BaseResourceVariable
        self._read = importlib.import_module(operations + "gen_resource_variable_ops").read_variable_op
        self._execute = importlib.import_module("tensorflow.python.eager.execute").quick_execute
        self._context = importlib.import_module("tensorflow.python.eager.context").context
        self._tensor = importlib.import_module("tensorflow.python.framework.ops").EagerTensor
        self._usual = self._tensor, self._np.ndarray, self._np.generic

    def array(self, value: Any) -> Any:
        """Return the value of a variable, an eager tensor or a NumPy scalar as an array."""
        if isinstance(value, self._usual):
            return self._np.asarray(value)
        plain = self._plain_variable(value)
        if plain is not None:
            return self._np.asarray(self._read(plain.handle, plain.dtype))
        inner = getattr(value, "value", None)  # the variable inside a Keras variable; for others, a method
        value = inner if isinstance(inner, self._variable) else value
        if isinstance(value, self._variable):  # variable.numpy() copies twice and takes five times as long
            value = self._read(value.handle, value.dtype)
        if not isinstance(value, self._tensor) and hasattr(value, "numpy"):
            value = value.numpy()
        return self._np.asarray(value)

    def _plain_variable(self, value: Any) -> Any:
        """Return a variable of the usual kind, or the one inside a Keras variable, None for anything else.

        To ask whether it is of another kind asks abstract classes, which takes as long as the reading.
        """
        if type(value) is self._plain:
            return value
        inner = getattr(value, "value", None)
        return inner if type(inner) is self._plain else None

    def _arrays(self, values: Sequence[Any]) -> list[Any]:
        """Return the array of each value. Variables on the CPU are read in one operation, of which each takes long."""
        plain = [None if isinstance(one, self._usual) else self._plain_variable(one) for one in values]
        variables = [one for one in plain if one is not None and one.handle.device.endswith("CPU:0")]
        if len(variables) < 2 or len(variables) < len(values):
            return [self.array(one) for one in values]
        handles = [one.handle for one in variables]
        types = tuple([one.dtype.as_datatype_enum for one in variables])
        attributes = "N", len(handles), "dtypes", types
        tensors = self._execute("_ReadVariablesOp", len(handles), handles, attributes, self._context())
        return [self._np.asarray(tensor) for tensor in tensors]

    def parts(self, tensors: Sequence[Any]) -> list[digest.Part]:
        """Return the part of each variable, tensor or array in a digest, named by its index."""
        return [self._part(str(index), array) for index, array in enumerate(self._arrays(tensors))]

    def part(self, name: str, tensor: Any) -> digest.Part:
        """Return (name, dtype, shape, digest) of a variable, a tensor or an array."""
        return self._part(name, self.array(tensor))

    def _part(self, name: str, array: Any) -> digest.Part:
        dtype = self._names.get(array.dtype)
        if dtype is None:
            dtype = self._names[array.dtype] = str(array.dtype)
        return name, dtype, array.shape, self._digest.words(self.raw(array))

    def raw(self, array: Any) -> Any:
        """Return an array whose bytes are the elements; an array of strings holds addresses instead."""
        return self._np.frombuffer(_flat(array), self._np.uint8) if array.dtype.kind in "OUS" else array

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        return self._digest.total(self.array(tensor))

    def size(self, tensor: Any) -> int:
        """Return the number of bytes of a variable."""
        elements: int = math.prod(tuple(tensor.shape))
        return elements * _itemsize(tensor.dtype)

    def device(self, tensor: Any) -> str:
        """Return the device of a variable, such as ``GPU:0``."""
        device = str(getattr(getattr(tensor, "value", tensor), "device", "") or getattr(tensor, "device", ""))
        return device.rpartition("device:")[2] or "unknown"

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array with one element, None for others."""
        array = self.array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiuV" else None


@functools.cache
def _itemsize(dtype: Any) -> int:
    bits = re.search(r"\d+", str(dtype))  # float32, <dtype: 'bfloat16'>; NumPy lacks some of them
    return int(bits.group()) // 8 if bits else 1


def _flat(texts: Any) -> bytes:
    # Add the length of each string, so that different lists of strings cannot have the same bytes.
    items = [text if isinstance(text, bytes) else str(text).encode() for text in texts.reshape(-1).tolist()]
    return b"".join([b"%d:%s" % (len(item), item) for item in items]) or b":"
