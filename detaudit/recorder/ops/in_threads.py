"""Enters every new thread of Python's, for what a framework keeps for each thread by itself."""

from __future__ import annotations

import functools
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


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
