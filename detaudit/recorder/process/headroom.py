"""Give the recorder's frames room above the recursion limit, so that a script can recurse as deep as without them."""

from __future__ import annotations

import sys
import threading


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
