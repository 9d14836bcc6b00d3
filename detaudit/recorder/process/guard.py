"""What a signal handler raises reaches the script, and hooks have room on the stack."""

from __future__ import annotations

import sys
import threading

# Recognize what a signal handler of the script raised while a hook of the recorder ran, such as a timeout.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_postponed: list[BaseException] = []


def postpone(error: BaseException) -> None:
    """Keep an error for the next hook if it is meant for the script: here, Python would ignore it."""
    if not isinstance(error, Exception) or raised(error):
        _postponed.append(error)


def raise_postponed() -> None:
    """Raise what was postponed, if this is the main thread, which runs the signal handlers."""
    if _postponed and sys.modules["threading"].current_thread() is sys.modules["threading"].main_thread():
        error = _postponed[0]
        _postponed.clear()
        raise error


def pass_on(error: BaseException) -> None:
    """Raise the error again if a signal handler raised it: it is meant for the script."""
    if raised(error):
        raise error


def raised(error: BaseException) -> bool:
    """Return whether a signal handler raised this error."""
    signals: Any = sys.modules.get("_signal")  # without it, there is no handler
    if signals is None:
        return False
    codes, trace = [], error.__traceback__
    while trace is not None:
        codes.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    return any(_code(signals.getsignal(number)) in codes for number in range(1, signals.NSIG))


class Guard:
    """A context for what a hook does: ``note(where, error)`` is called if it fails, and the script goes on.

    What a signal handler raises reaches the script, such as a timeout, and what is no Exception, such as an
    interruption.
    """

    def __init__(self, note: Callable[[str, Exception], None], where: str) -> None:
        self._note, self._where = note, where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or raised(error):
            return False
        self._note(self._where, error)
        return True


def _code(handler: Any) -> Any:
    handler = getattr(handler, "func", handler)  # of a functools.partial
    function = getattr(handler, "__func__", handler)  # of a bound method
    called: Any = function if hasattr(function, "__code__") else type(function).__call__
    return getattr(called, "__code__", None)


# Give the recorder's frames room above the recursion limit, so that a script can recurse as deep as without them.


class _Headroom:
    """Raises the recursion limit while it is entered: a call of a module takes 4 frames with the recorder, not 3."""

    def __init__(self) -> None:
        self.forget()
        self._own = self._raised = 0

    def forget(self) -> None:
        """Start over in a forked child, which has no other threads of its parent."""
        self._lock, self._entered = threading.RLock(), 0  # a signal handler may come back to it

    def __enter__(self) -> None:
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                now = sys.getrecursionlimit()
                if now != self._raised:
                    self._own = now
                self._raised = self._own + self._own // 3 + 100
                sys.setrecursionlimit(self._raised)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered and sys.getrecursionlimit() == self._raised:  # the script did not change it
                try:
                    sys.setrecursionlimit(self._own)
                except RecursionError:
                    pass  # Python 3.10 needs 50 frames below the limit; the next exit restores it


headroom = _Headroom()
"""The one of this process."""
