"""Lists the operations of TensorFlow that may race, when they are traced: nothing is added to a graph."""

from __future__ import annotations

from . import tensorflow_kinds as kinds
from .tensorflow_calls import named
from .tensorflow_places import Places, is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from .stream import OpStream
    from .tensorflow_calls import Calls


class Scan:
    """Writes a line without inputs and outputs for each such operation of a graph, and for each line of eager code."""

    def __init__(
        self, stream: OpStream, places: Places, name_of: Callable[[Any], str], calls: Calls, inside: threading.local
    ) -> None:
        self._stream, self._places, self._name_of = stream, places, name_of
        self._calls, self._inside = calls, inside
        self._known: set[tuple[str, str, int]] = set()

    def seen(
        self, op_type: str, inputs: Sequence[Any], outputs: Sequence[Any], name: str, graph: Any, frame: FrameType
    ) -> None:
        """Take in one operation; it runs eagerly where there is no graph."""
        if not (kinds.RACES.match(op_type) or (self._in_parallel(graph) and kinds.RACES_IN_PARALLEL.match(op_type))):
            return
        if is_own(frame):
            return
        if graph is None:
            place = self._places.ran(op_type, inputs, outputs, frame)
            if (op_type, place.file, place.line) in self._known:
                return
            self._known.add((op_type, place.file, place.line))
            node = key = ""
        else:
            operation = outputs[0].op if len(outputs) else graph.get_operation_by_name(name)
            place, node = self._places.traced(operation, frame), operation.name
            key = f"{self._name_of(graph)}/{node}"
        self._write(op_type, place, {"key": key, "node": node, "module": place.module})

    def _in_parallel(self, graph: Any) -> bool:
        """Whether a function is traced that tf.data calls, or the body of a loop."""
        return bool(getattr(self._inside, "data", 0)) or "while_body" in getattr(graph, "name", "")

    def _write(self, op_type: str, place: Any, more: dict[str, str]) -> None:
        fields: dict[str, Any] = {name: value for name, value in more.items() if value}
        if kinds.RANDOM.match(op_type):
            fields["random"] = True
        self._stream.write(
            "op",
            n=self._stream.next_number(),
            thread=named(self._calls.thread()),
            step=self._stream.step(False),
            op=op_type,
            ins=[],
            outs=[],
            file=place.file,
            line=place.line,
            **fields,
        )
