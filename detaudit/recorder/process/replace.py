"""Replace functions so that the replacement looks and behaves like the original."""

from __future__ import annotations

import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _callable(call: Callable[..., Any], holder: Any, name: str) -> Any:
    """Return a replacement for a C function, which does not become a method in a class as a Python function does."""
    members = {"__call__": staticmethod(call), "__reduce__": lambda _: name, "__module__": holder.__name__}
    return type("function", (), members)()


def replace(
    holder: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *, traced: bool = False
) -> Any:
    """Replace ``holder.name`` by ``make(original)`` and return the replacement.

    ``holder`` is a module or a class. Set ``traced`` if a compiler of Python code may trace the function: compilers
    accept only Python functions. Such a replacement becomes a method if a class holds it, even for a C function.

    Raises AttributeError if there is no such function.
    """
    found = vars(holder).get(name) or getattr(holder, name)
    function = found.__func__ if isinstance(found, classmethod) else found
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
    setattr(holder, name, classmethod(wrapper) if isinstance(found, classmethod) else wrapper)
    return wrapper


def set_in_c(kind: type, **members: Any) -> None:
    """Set attributes of a C class through the dict behind its read-only view. A subclass would be a different type."""
    import ctypes
    import gc

    (held,) = gc.get_referents(vars(kind))
    held.update(members)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
