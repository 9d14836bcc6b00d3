"""List weights one by one at steps 1, 2, 4, 8, …, to find which of them differs first, and how far."""

from __future__ import annotations

from .summary import weight_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .digest import Part
    from .pending import PendingEvents
    from .reader import FrameworkReader
    from .states import State


_MOST = 512
"""Tensors that are listed of a set, so that the lines of a training take little more room than its final weights."""


def is_listed(step: int) -> bool:
    """Return whether weights are listed one by one at this step."""
    return step & (step - 1) == 0


class EachWeight:
    """Lists the weights of one training. It keeps none of them, only a number for each set."""

    def __init__(self, reader: FrameworkReader, events: PendingEvents) -> None:
        self._reader, self._events = reader, events
        self._numbers: dict[Any, int] = {}

    def add(
        self, line: dict[str, Any], key: Any, tensors: Sequence[Any], parts: Sequence[Part], states: Sequence[State]
    ) -> None:
        """Complete the ``weights`` of wire.py with a set of weights, whose ``parts`` were digested already."""
        key, listed = (key, len(parts)), tensors[:_MOST]
        if key not in self._numbers:
            names = {place: name for one in states for place, name in one.names().items()}
            line["names"] = [names.get(id(tensor)) for tensor in listed]
        line["set"] = self._numbers.setdefault(key, len(self._numbers))
        line["count"] = len(parts)
        line["tensors"] = [weight_record(part, self._reader.total(tensor)) for tensor, part in zip(listed, parts)]
        self._events.add_line(line["step"], line)
