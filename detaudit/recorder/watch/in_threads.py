"""Name the threads of Python, and hook their start for a framework that keeps its state per thread."""

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
    """Return the name of this thread, or of its task if it belongs to a pool, whose threads take tasks in any order."""
    known = threads.name()
    return wire.MAIN_THREAD if known == "" else (known or threading.current_thread().name).strip()


def enter_in_threads(enter: Callable[[], Callable[[], None] | None]) -> None:
    """Call ``enter()`` at the start of each new thread, and what it returned at its end. ``enter`` must not raise."""
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
