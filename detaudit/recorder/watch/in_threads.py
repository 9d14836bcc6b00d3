"""Threads of Python's: what each is called, and what a framework keeps for each by itself."""

from __future__ import annotations

import functools
import threading

from ... import wire
from ..process import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def name() -> str:
    """Return the name of this thread, or of the task of a pool: which thread takes that may be chance."""
    known = threads.name()
    return wire.MAIN_THREAD if known == "" else (known or threading.current_thread().name).strip()


def enter_in_threads(enter: Callable[[], Callable[[], None] | None]) -> None:
    """Call ``enter()``, which never raises, in each new thread; what it returned is called when that ends."""
    thread = threading.Thread
    run: Any = thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(run)
    def _bootstrap_inner(self: Any) -> None:
        leave = enter()
        try:
            run(self)
        finally:
            if leave is not None:
                leave()

    thread._bootstrap_inner = _bootstrap_inner  # type: ignore[attr-defined]
