"""Count the threads of a run that compete for CPUs."""

import contextlib
import os
from collections.abc import Iterable

_USUAL = 0.9
"""The share of looks that saw no more threads: an import or a pause is not what the training needs."""


class Competing:
    """The threads of a run that are running or wait for a CPU, as looks from time to time show."""

    def __init__(self) -> None:
        self._seen: list[int] = []

    def look(self, pids: Iterable[int]) -> None:
        """Look at the processes with these numbers."""
        self._seen.append(sum(map(_running, pids)))

    @property
    def usual(self) -> int:
        """How many there were at most in nine looks of ten, 0 without a look."""
        return sorted(self._seen)[int(_USUAL * (len(self._seen) - 1))] if self._seen else 0


def _running(pid: int) -> int:
    found = 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                found += file.read().rpartition(b") ")[2].startswith(b"R")
    return found
