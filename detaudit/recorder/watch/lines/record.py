"""Record the lines and assignments of one thread in the current step."""

from __future__ import annotations

import threading
import weakref

from .paths import Paths
from .values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..stream import OpStream
    from .values import Description

_MOST_ASSIGNED = 2_000
"""Values that are written at most per thread and step."""

_ALWAYS = 12
"""A name is checked after a line this many times per step, then at each power of two."""


class Record:
    """The lines and assignments of one thread in the current step."""

    def __init__(self, stream: OpStream, name: str) -> None:
        thread = threading.current_thread()
        self._thread, self.is_main = weakref.ref(thread), thread is threading.main_thread()
        self._stream, self._name = stream, name
        self.paths, self.values = Paths(stream, name), Values()
        self._begin(stream.step(False))

    def _begin(self, step: int) -> None:
        self._step = step
        self._assigned = 0
        self._checks: dict[tuple[str, int, str], int] = {}

    def enter_step(self, step: int) -> None:
        """Write the previous step, if ``step`` is a new one."""
        if step != self._step:
            self.write()
            self._begin(step)

    def write(self, ended: bool = False) -> None:
        """Write the lines that ran since the last call."""
        self.paths.write(self._step, ended)

    @property
    def has_ended(self) -> bool:
        """Whether the thread has ended."""
        thread = self._thread()
        return thread is None or not thread.is_alive()

    def is_due(self, file: str, line: int, name: str) -> bool:
        """Count a check of a name after a line, and return whether to do it; see _ALWAYS."""
        key = file, line, name
        count = self._checks[key] = self._checks.get(key, 0) + 1
        return (count <= _ALWAYS or count & (count - 1) == 0) and self._assigned < _MOST_ASSIGNED

    def assigned(self, file: str, line: int, name: str, description: Description) -> None:
        """Write the value of a name after a line."""
        self._assigned += 1
        number, (digest, bag, text) = self._stream.next_number(), description
        place = {"thread": self._name, "at": self.paths.lines, "step": self._step, "file": file, "line": line}
        self._stream.write("assigned", n=number, **place, name=name, digest=digest, bag=bag, text=text)
