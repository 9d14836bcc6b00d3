"""Recognize what a signal handler of the script raised while a hook of the recorder ran, such as a timeout."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
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


def _code(handler: Any) -> Any:
    handler = getattr(handler, "func", handler)  # of a functools.partial
    function = getattr(handler, "__func__", handler)  # of a bound method
    called: Any = function if hasattr(function, "__code__") else type(function).__call__
    return getattr(called, "__code__", None)
