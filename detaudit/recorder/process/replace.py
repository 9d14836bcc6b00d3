"""Puts a function of our own in place of another, so that nobody but a reader of its code can tell."""

from __future__ import annotations

import os
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _callable(call: Callable[..., Any], holder: Any, name: str) -> Any:
    """Return what stands for a function of C: unlike one of Python, it is no method where a class holds it."""
    members = {"__call__": staticmethod(call), "__reduce__": lambda _: name, "__module__": holder.__name__}
    return type("function", (), members)()


def replace(
    holder: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *, traced: bool = False
) -> Any:
    """Replace ``holder.name`` by ``make(the function that is there)`` and return what stands there now.

    ``holder`` is a module or a class. What compilers of Python, which know functions alone, may trace is ``traced``;
    it becomes a method if a class holds it, which a function of C would not.

    Raises AttributeError where there is no such function.
    """
    found = vars(holder).get(name) or getattr(holder, name)
    function = found.__func__ if isinstance(found, classmethod) else found
    wrapper: Any = make(function)
    if not traced and (isinstance(function, types.MethodType) or not hasattr(function, "__get__")):
        wrapper = _callable(wrapper, holder, name)
    else:
        wrapper.__module__ = getattr(function, "__module__", None)  # which a method of a class of C has not
        wrapper.__dict__.update(getattr(function, "__dict__", {}))
    # As functools.wraps does, whose import would take longer than all else at the start of a bare Python.
    for attribute in ("__name__", "__qualname__", "__doc__"):
        setattr(wrapper, attribute, getattr(function, attribute, None))
    if traced:
        wrapper.__module__, wrapper.__qualname__ = holder.__name__, name  # where pickle finds it
    wrapper.__wrapped__ = function
    setattr(holder, name, classmethod(wrapper) if isinstance(found, classmethod) else wrapper)
    return wrapper


def replace_in_os(name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a function of os, also where os lists the functions that can do more."""
    function = getattr(os, name)
    wrapper = replace(os, name, make)
    for members in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        if function in members:  # scripts, and shutil, ask whether the function is in here
            members.add(wrapper)


def set_in_c(kind: type, **members: Any) -> None:
    """Set attributes of a class of C, by the dict behind its read-only view: another class would be another type."""
    import ctypes
    import gc

    (held,) = gc.get_referents(vars(kind))
    held.update(members)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
