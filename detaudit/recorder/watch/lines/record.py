"""What one thread of the user's ran and assigned in the step under way."""

from __future__ import annotations

import threading
import weakref

from .paths import Paths
from .values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..stream import OpStream

_MOST_ASSIGNED = 2_000
"""Values written of one thread in one step."""

_ALWAYS = 12
"""How often in a step a name is looked at after a line, before that becomes rarer."""


class Record:
    """What one thread ran and assigned in the step under way."""

    def __init__(self, stream: OpStream, name: str) -> None:
        thread = threading.current_thread()
        self._thread, self.is_main = weakref.ref(thread), thread is threading.main_thread()
        self._stream, self._name = stream, name
        self.paths, self.values = Paths(stream, name), Values()
        self._begin(stream.step(False))

    def _begin(self, step: int) -> None:
        self._step = step
        self._assigned = 0
        self._looks: dict[tuple[str, int, str], int] = {}

    def turn(self, step: int) -> None:
        """Write the step that is over, if this is another."""
        if step != self._step:
            self.write()
            self._begin(step)

    def write(self, ended: bool = False) -> None:
        """Write what ran since the last time."""
        self.paths.write(self._step, ended)

    @property
    def has_ended(self) -> bool:
        """Whether the thread runs no more."""
        thread = self._thread()
        return thread is None or not thread.is_alive()

    def is_due(self, file: str, line: int, name: str) -> bool:
        """Whether to look at a name after a line: the first times in a step, then at each power of two."""
        key = file, line, name
        count = self._looks[key] = self._looks.get(key, 0) + 1
        return (count <= _ALWAYS or count & (count - 1) == 0) and self._assigned < _MOST_ASSIGNED

    def assigned(self, file: str, line: int, name: str, told: tuple[str, str, str]) -> None:
        """Write what a name holds after a line."""
        self._assigned += 1
        number, (digest, bag, text) = self._stream.next_number(), told
        place = {"thread": self._name, "at": self.paths.lines, "step": self._step, "file": file, "line": line}
        self._stream.write("assigned", n=number, **place, name=name, digest=digest, bag=bag, text=text)
