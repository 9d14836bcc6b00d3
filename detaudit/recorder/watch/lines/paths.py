"""Record which lines a thread ran in a step, as sequences without repeated lines, each written once and counted."""

from __future__ import annotations

from ...training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..stream import OpStream

    Place = tuple[str, int]

_MOST_SEQUENCES = 20_000
"""Sequences of one step. A loop whose iterations run the same lines is one sequence, no matter how often it runs."""

_MOST_PLACES = 200_000
"""Lines that are kept in memory to recognize sequences. A thread that exceeds this starts to number them again."""

_MASK = (1 << 64) - 1


class Paths:
    """The lines that one thread ran in the current step."""

    def __init__(self, stream: OpStream, thread: str) -> None:
        self._stream, self._thread = stream, thread
        self.lines = 0
        self._sequence: dict[Place, None] = {}
        self._known: dict[tuple[Place, ...], int] = {}
        self._places = 0
        self._ran: list[list[int]] = []
        self._more, self._rest = 0, 0
        self._ended = False

    def add(self, place: Place) -> None:
        """Add the line that runs next."""
        self.lines += 1
        self._ended = False
        if self._more:
            self._roll(place)
            return
        if place in self._sequence:
            self._close()
        self._sequence[place] = None

    def _roll(self, place: Place) -> None:
        self._more += 1
        self._rest = (self._rest * 0x9E3779B97F4A7C15 + digest.small(b"%d %s" % (place[1], _bytes(place[0])))) & _MASK

    def _close(self) -> None:
        """Count the sequence that ends here. If there is no room left, only digest it."""
        sequence, self._sequence = tuple(self._sequence), {}
        if not sequence:
            return
        number = self._known.get(sequence)
        if number is not None and self._ran and self._ran[-1][0] == number:
            self._ran[-1][1] += 1
        elif len(self._ran) >= _MOST_SEQUENCES or self._places > 2 * _MOST_PLACES:
            for place in sequence:
                self._roll(place)
        else:
            self._ran.append([self._number(sequence) if number is None else number, 1])

    def _number(self, sequence: tuple[Place, ...]) -> int:
        number = self._known[sequence] = len(self._known)
        self._places += len(sequence)
        files: list[tuple[str, list[int]]] = []
        for file, line in sequence:
            if not files or files[-1][0] != file:
                files.append((file, []))
            files[-1][1].append(line)
        self._stream.write("path", thread=self._thread, id=number, lines=files)
        return number

    def write(self, step: int, ended: bool = False) -> None:
        """Write the lines that ran since the last call. Set ``ended`` if this thread has ended."""
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
