"""Hold the events of one training until their step has ended."""

from __future__ import annotations

from ..process.sink import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PendingEvents:
    """The events of one framework that are not written yet, as lines of the event log."""

    def __init__(self, framework: str) -> None:
        self._framework = framework
        self._lines: list[tuple[int, str]] = []

    def add(self, lane: int, step: int, stage: str, digest: str, value: float | None) -> None:
        """Add an event."""
        # This runs at every step, and digests and float.hex() need no escaping.
        shown = "null" if value is None else f'"{float(value).hex()}"'
        of_lane = f'"lane":{lane},' if lane else ""
        self._lines.append(
            (
                step,
                f'{{"k":"event","fw":"{self._framework}",{of_lane}"step":{step},"stage":"{stage}",'
                f'"digest":"{digest}","value":{shown}}}\n',
            )
        )

    def add_line(self, step: int, fields: dict[str, Any]) -> None:
        """Add another line, which is written with a step; with the first one if ``step`` is 0."""
        self._lines.append((step, encode(fields) + "\n"))

    def clear(self, after: int = -1) -> None:
        """Drop the events of all steps after this one; by default, all events."""
        self._lines = [(step, line) for step, line in self._lines if step <= after]

    def through(self, steps: int) -> str:
        """Return and drop the lines up to this step.

        The others are kept: a backward pass without an update, such as a probe for a batch size, is no step.
        """
        if not steps or not self._lines:
            return ""
        lines, self._lines = self._lines, [(step, line) for step, line in self._lines if step > steps]
        if self._lines:
            return "".join([line for step, line in lines if step <= steps])
        return "".join([line for _, line in lines])
