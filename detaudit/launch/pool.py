"""Do several things at once that each launch a run, and hand back what comes of them."""

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from detaudit.launch import CancelledError, Launcher, RunOutcome, RunSpec
from detaudit.launch.shield import shielded

R = TypeVar("R")


class Pool(Generic[R]):
    """Takes work under a number, and hands back what finished as it comes.

    The work launches its runs here. With ``threads``, each work has a thread of its own, and signals reach the main
    thread alone; so ``cancel`` ends runs by their ticks. Without, it is done where ``next`` is called.
    """

    def __init__(self, launcher: Launcher, *, threads: bool) -> None:
        self._launcher, self._threaded = launcher, threads
        self._cancelled = threading.Event()
        self._later: deque[tuple[int, Callable[[], R]]] = deque()
        self._threads: dict[int, threading.Thread] = {}
        self._ended: queue.SimpleQueue[tuple[int, R | BaseException]] = queue.SimpleQueue()

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """See Launcher.launch. Raises CancelledError if the run is not wanted any more."""

        def wanted() -> None:
            if self._cancelled.is_set():
                raise CancelledError
            tick()

        if self._cancelled.is_set():
            raise CancelledError
        return self._launcher.launch(spec, wanted)

    def submit(self, number: int, work: Callable[[], R]) -> None:
        """Begin this work, under a number that no other work has."""
        if not self._threaded:
            self._later.append((number, work))
            return
        self._threads[number] = threading.Thread(target=self._do, args=(number, work))
        self._threads[number].start()

    def next(self) -> tuple[int, R]:
        """Wait for any work to finish, and return its number and its result; raise what it raised."""
        if not self._threaded:
            number, work = self._later.popleft()
            return number, work()
        number, found = self._ended.get()
        self._threads.pop(number).join()
        if isinstance(found, BaseException):
            raise found
        return number, found

    def cancel(self) -> list[tuple[int, R]]:
        """End all that is under way, wait until nothing of it is left, and return what finished nevertheless."""
        with shielded():
            self._cancelled.set()
            for thread in self._threads.values():
                thread.join()
        self._threads.clear()
        self._later.clear()
        self._cancelled.clear()
        finished = []
        while not self._ended.empty():
            number, found = self._ended.get()
            if not isinstance(found, BaseException):
                finished.append((number, found))
        return finished

    def _do(self, number: int, work: Callable[[], R]) -> None:
        try:
            self._ended.put((number, work()))
        except BaseException as error:  # noqa: BLE001
            self._ended.put((number, error))
