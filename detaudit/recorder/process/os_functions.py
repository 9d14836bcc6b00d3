"""Replace functions of ``os``, and the iterator that ``os.scandir`` returns."""

from __future__ import annotations

import os

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def replace_in_os(
    name: str,
    make: Callable[[Callable[..., Any]], Callable[..., Any]],
    put: Callable[..., Any] = replace,
) -> tuple[Any, list[set[Any]]]:
    """Replace a function of os by means of ``put``, also in the sets such as ``os.supports_fd`` that contain it.

    Return the replacement and the sets that it was added to.
    """
    function = getattr(os, name)
    wrapper = put(os, name, make)
    # Scripts, and shutil, check whether a function is in one of these sets.
    known = (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks)
    sets: list[set[Any]] = [members for members in known if function in members]
    for members in sets:
        members.add(wrapper)
    return wrapper, sets


class DirectoryScan:
    """Replaces the iterator that ``os.scandir`` returns; a subclass changes or observes its entries."""

    def __init__(self, entries: Any) -> None:
        self._entries = entries
        self._handed_out: Iterator[Any] | None = None

    def _hand_out(self, entries: Any) -> Iterator[Any]:
        """Return the entries to hand out. Called when the first one is requested."""
        raise NotImplementedError

    def __iter__(self) -> DirectoryScan:
        return self

    def __next__(self) -> Any:
        if self._handed_out is None:
            self._handed_out = self._hand_out(self._entries)
        return next(self._handed_out)

    def __enter__(self) -> DirectoryScan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory; no more entries are handed out."""
        self._handed_out = iter(())
        self._entries.close()
