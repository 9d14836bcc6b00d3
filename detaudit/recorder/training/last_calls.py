"""Keep what models return until the next update of the weights, apart for each thread.

What the main thread returns has an order. Calls of other threads have none: their digests are added up. A thread that
calls models while another one trains goes on by chance after the last update, so none of its calls count, except for
what it returns after the last update of a training of its own. A task of a pool is a thread here.
"""

from __future__ import annotations

import threading

from ..process import threads
from . import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .reader import FrameworkReader

LATER_BYTES = 16 * 2**20
LATER_CALLS = 256
"""After the first update, so many bytes and calls wait before they are digested: most are followed by an update."""

_MASK = (1 << 128) - 1


class _ThreadCalls:
    """The calls of one thread, or of one task of a pool, since the last update of what it trains, if it trains."""

    def __init__(self, task: int) -> None:
        self.task = task
        self.trains = False
        self.drop()

    def drop(self) -> None:
        self.count = self.total = 0


class LastCalls:
    """The calls of all threads since the last update. ``digested`` returns the digest of what a call returned."""

    def __init__(self, reader: FrameworkReader, digested: Callable[[Sequence[Any]], str]) -> None:
        self._reader, self._digested = reader, digested
        self._here = threading.local()
        self._lock = threading.RLock()  # a signal handler may call models, or update weights
        self._beside: list[_ThreadCalls] = []
        self._main_trains = False
        self._drop()

    def _drop(self) -> None:
        self._later: list[list[Any]] = []
        self._later_bytes = self._ordered = 0
        self._chain = ""

    def updated(self) -> None:
        """Drop what the update of the weights, in this thread, makes obsolete."""
        if not self._beside and threading.get_ident() == threading.main_thread().ident:
            self._main_trains = True
            self._drop()
            return
        # A framework's own thread updates for the main one.
        here = self.of_thread() if threads.in_background() else None
        with self._lock:
            if here is None:
                self._main_trains = True
            else:
                here.trains = True
                here.drop()
            self._beside = [one for one in self._beside if one.trains and one is not here]
            if here is not None:
                self._beside.append(here)
        if here is None or not self._main_trains:
            self._drop()

    def of_thread(self) -> _ThreadCalls | None:
        """Return the calls of this thread from the beginning of its first call on, None in the main thread."""
        if threading.get_ident() == threading.main_thread().ident:
            return None
        found: _ThreadCalls | None = getattr(self._here, "calls", None)
        if found is None or found.task != threads.ended_tasks():
            found = self._here.calls = _ThreadCalls(threads.ended_tasks())
            with self._lock:
                self._beside.append(found)
        return found

    def keep(self, values: Sequence[Any]) -> None:
        """Keep an output until it is known whether an update follows, or digest it if that takes much memory."""
        if self.of_thread() is not None:
            self.add(self._digested(values))
            return
        size = sum([self._reader.size(value) for value in values if not isinstance(value, str)])
        large = size > LATER_BYTES
        if self._later_bytes + size > LATER_BYTES or len(self._later) == LATER_CALLS:
            self._digest_later()
        kept = [value if isinstance(value, str) else self._reader.kept(value, not large) for value in values]
        if any(value is None for value in kept):
            self._digest_later()
            self.add(self._digested(values))
            return
        self._later_bytes += size
        self._later.append(kept)

    def _digest_later(self) -> None:
        later, self._later, self._later_bytes = self._later, [], 0
        for values in later:
            self._append(self._digested(values))

    def _append(self, output: str) -> None:
        self._ordered += 1
        self._chain = digest.of_bytes((self._chain + output).encode())

    def add(self, output: str) -> None:
        """Count a call by the digest of its output."""
        here = self.of_thread()
        if here is None:
            self._append(output)
        else:
            here.count += 1
            here.total = (here.total + int(output, 16)) & _MASK

    @property
    def unordered(self) -> int:
        """The sum of the digests of what threads returned."""
        return sum([one.total for one in self._beside]) & _MASK

    @property
    def count(self) -> int:
        """The number of calls that count."""
        return self._ordered + len(self._later) + sum([one.count for one in self._beside])

    def summary(self) -> str | None:
        """Return one digest of all outputs that count, None if there are none."""
        self._digest_later()
        return digest.of_bytes(f"{self._chain} {self.count} {self.unordered:x}".encode()) if self.count else None
