"""Replace functions so that they look like the originals."""

from __future__ import annotations

import os
import types

# Replace functions so that the replacement looks and behaves like the original.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def _callable(call: Callable[..., Any], holder: Any, name: str) -> Any:
    """Return a replacement for a C function, which does not become a method in a class as a Python function does.

    Nor does AutoGraph convert it: it has the mark of do_not_convert.
    """
    members = {
        "__call__": staticmethod(call),
        "__reduce__": lambda _: name,
        "__module__": holder.__name__,
        "autograph_info__": {},
    }
    return type("function", (), members)()


def replace(
    holder: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *, traced: bool = False
) -> Any:
    """Replace ``holder.name`` by ``make(original)`` and return the replacement.

    ``holder`` is a module or a class. Set ``traced`` if a compiler of Python code may trace the function: compilers
    accept only Python functions. Such a replacement becomes a method if a class holds it, even for a C function.

    Raises AttributeError if there is no such function.
    """
    original = vars(holder).get(name) or getattr(holder, name)
    function = original.__func__ if isinstance(original, classmethod) else original
    wrapper: Any = make(function)
    if not traced and (isinstance(function, types.MethodType) or not hasattr(function, "__get__")):
        wrapper = _callable(wrapper, holder, name)
    else:
        wrapper.__module__ = getattr(function, "__module__", None)  # a method of a C class has none
        wrapper.__dict__.update(getattr(function, "__dict__", {}))
    # Like functools.wraps, whose import would take most of the recorder's startup time.
    for attribute in ("__name__", "__qualname__", "__doc__"):
        setattr(wrapper, attribute, getattr(function, attribute, None))
    if traced:
        wrapper.__module__, wrapper.__qualname__ = holder.__name__, name  # so that pickle finds it
    wrapper.__wrapped__ = function
    setattr(holder, name, classmethod(wrapper) if isinstance(original, classmethod) else wrapper)
    return wrapper


def set_in_c(kind: type, **members: Any) -> None:
    """Set attributes of a C class through the dict behind its read-only view. A subclass would be a different type."""
    import ctypes
    import gc

    (namespace,) = gc.get_referents(vars(kind))
    namespace.update(members)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


# Replace functions of ``os``, and the iterator that ``os.scandir`` returns.


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
