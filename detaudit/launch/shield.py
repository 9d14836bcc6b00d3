"""Let what ends an audit wait until something is done, such as ending its processes."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends an audit. SIGKILL does as well, and then the reaper ends its runs."""


@contextmanager
def shielded() -> Iterator[None]:
    """Let a signal that ends an audit take effect only after this block. Further ones are dropped."""
    if threading.current_thread() is not threading.main_thread():  # where no handlers run
        yield
        return
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    before: dict[signal.Signals, Any] = {}
    try:
        for number in ENDING:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, note)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
