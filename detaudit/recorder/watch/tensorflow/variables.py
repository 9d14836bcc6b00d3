"""Number TensorFlow's variables, and keep the last known value of each."""

from __future__ import annotations

import importlib
import weakref
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
