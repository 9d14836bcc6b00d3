"""List the operations of TensorFlow that may race when they are traced, without changing a graph."""

from __future__ import annotations

from .. import in_threads
from . import kinds
from .places import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

    from ..stream import OpStream
    from .places import GraphNames, Places
    from .racing import Racing


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
        frame: FrameType,
        attrs: Any = (),
    ) -> None:
        """Handle one operation. It runs eagerly if ``graph`` is None."""
        if not self._racing.may(op_type, graph, inputs) or is_own(frame):
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
            key = f"{self._names.of(graph)}/{node}"
        self._write(op_type, place, {"key": key, "node": node, "module": place.module})

    def _write(self, op_type: str, place: Any, more: dict[str, str]) -> None:
        fields: dict[str, Any] = {name: value for name, value in more.items() if value}
        if kinds.RANDOM.match(op_type):
            fields["random"] = True
        self._stream.write(
            "op",
            n=self._stream.next_number(),
            thread=in_threads.name(),
            step=self._stream.step(False),
            op=op_type,
            ins=[],
            outs=[],
            listed=True,
            file=place.file,
            line=place.line,
            **fields,
        )
