"""Count the threads and programs that this process starts: each may print lines between those of the others."""

from __future__ import annotations

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROGRAMS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn")
"""Audit events at which a process starts another, see https://docs.python.org/3/library/audit_events.html."""

_started = [0]


def started() -> int:
    """Return how many threads and programs this process has started so far."""
    return _started[0]


def count(*_: Any) -> None:
    """Count one more."""
    _started[0] += 1


def forget() -> None:
    """Start over, in a forked child."""
    _started[0] = 0


def watch_threads(threading: Any, _: object) -> None:
    """Count threads, by a hook in ``threading``."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def start(self: Any, *args: Any, **kwargs: Any) -> Any:
            count()
            return function(self, *args, **kwargs)

        return start

    replace(threading.Thread, "start", make)
