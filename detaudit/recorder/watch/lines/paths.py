"""Keeps which lines a thread ran in a step: as stretches without a repeated line, each written once and counted."""

from __future__ import annotations

from ...training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..stream import OpStream

    Place = tuple[str, int]

_MOST_STRETCHES = 20_000
"""Kept of one step. A loop whose body runs alike each time is one stretch, however often it goes round."""

_MOST_PLACES = 200_000
"""Kept in memory to know stretches by. Above it a thread starts to number them anew."""

_MASK = (1 << 64) - 1


class Paths:
    """What one thread ran in the step under way."""

    def __init__(self, stream: OpStream, thread: str) -> None:
        self._stream, self._thread = stream, thread
        self.lines = 0
        self._stretch: dict[Place, None] = {}
        self._known: dict[tuple[Place, ...], int] = {}
        self._places = 0
        self._ran: list[list[int]] = []
        self._more, self._rest = 0, 0
        self._ended = False

    def add(self, place: Place) -> None:
        """Take in the line that runs next."""
        self.lines += 1
        self._ended = False
        if self._more:
            self._roll(place)
            return
        if place in self._stretch:
            self._close()
        self._stretch[place] = None

    def _roll(self, place: Place) -> None:
        self._more += 1
        self._rest = (self._rest * 0x9E3779B97F4A7C15 + digest.small(b"%d %s" % (place[1], _bytes(place[0])))) & _MASK

    def _close(self) -> None:
        """Count the stretch that ends here; what no longer fits is only digested."""
        stretch, self._stretch = tuple(self._stretch), {}
        if not stretch:
            return
        number = self._known.get(stretch)
        if number is not None and self._ran and self._ran[-1][0] == number:
            self._ran[-1][1] += 1
        elif len(self._ran) >= _MOST_STRETCHES or self._places > 2 * _MOST_PLACES:
            for place in stretch:
                self._roll(place)
        else:
            self._ran.append([self._name(stretch) if number is None else number, 1])

    def _name(self, stretch: tuple[Place, ...]) -> int:
        number = self._known[stretch] = len(self._known)
        self._places += len(stretch)
        files: list[tuple[str, list[int]]] = []
        for file, line in stretch:
            if not files or files[-1][0] != file:
                files.append((file, []))
            files[-1][1].append(line)
        self._stream.write("path", thread=self._thread, id=number, lines=files)
        return number

    def write(self, step: int, ended: bool = False) -> None:
        """Write what ran since the last time; ``ended`` where this thread runs no more."""
        self._close()
        if self._ran or self._more or ended > self._ended:
            fields: dict[str, Any] = {"thread": self._thread, "step": step, "paths": self._ran}
            if self._more:
                fields["more"] = [self._more, "%016x" % self._rest]
            if ended:
                fields["ended"] = self._ended = True
            self._stream.write("line", **fields)
        self._ran, self._more, self._rest = [], 0, 0
        if self._places > _MOST_PLACES:
            self._known, self._places = {}, 0


def _bytes(file: str) -> bytes:
    return file.encode("utf-8", "surrogateescape")
