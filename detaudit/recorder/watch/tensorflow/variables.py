"""The state of TensorFlow's variables while they are watched: a number for each, and what it was when last seen."""

from __future__ import annotations

import importlib
import weakref
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

UNKNOWN = -1
"""The number of a variable that cannot be told, such as one that is handed to a tf.function as an argument."""


class State(NamedTuple):
    """What was in a variable: its digest, and the array itself where that is kept."""

    digest: str
    array: Any


class Variables:
    """Numbers the variables by first appearance. What an operation leaves in one is what the next one finds.

    A state that is read before an operation would have to be read by one that comes earlier in the graph. Instead the
    last that was seen is taken: what was written by an operation that is recorded was read back after it.
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
        """Return the number of the variable whose handle this is, also where a function captured it."""
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
        """Read a variable, in a graph by an operation that is added to it; None where this is no variable."""
        data = self._data(handle)
        if data is None or not data.is_set or len(data.shape_and_type) != 1:
            return None
        with self._record.stop_recording():
            return self._read(handle, self._dtypes.as_dtype(data.shape_and_type[0].dtype))

    def look(self, number: int) -> None:
        """Take notice of what is in a variable now, if that is not known."""
        handle = self._handles[number]() if number != UNKNOWN and number not in self.states else None
        if handle is None:
            return
        try:
            with self._ops.init_scope():
                value = self.read(handle)
                if value is not None:
                    self.states[number] = self._state(value.numpy())
        except self._errors():  # not initialised yet
            pass

    def look_at_all(self) -> None:
        """Take notice of what is in every variable that was met."""
        for number in range(len(self._handles)):
            self.look(number)

    def _errors(self) -> Any:
        return importlib.import_module("tensorflow.python.framework.errors_impl").OpError
