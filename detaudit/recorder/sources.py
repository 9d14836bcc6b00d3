"""Where the script seeds a generator, or draws from one without a seed: each with the line of the user's own code."""

from __future__ import annotations

import functools
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from .sink import Sink

FUNCTIONS = {
    "random": ("seed",),
    "numpy.random": ("seed", "default_rng"),
    "torch": ("manual_seed", "seed"),
    "tensorflow": ("random.set_seed",),
}
"""Module, and the functions in it whose first argument is a seed; without one they take the system's entropy."""

_MOST = 200
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_RECORDER = os.path.dirname(os.path.abspath(__file__)) + os.sep

repeatable: set[str] = set()
"""Functions whose entropy a flag has made repeatable: unseeded calls of them are no source any more."""

_noted: set[tuple[str, str, int, str]] = set()


def _is_users(filename: str) -> bool:
    if filename.startswith((_RECORDER, "<frozen")):
        return False
    packages = f"{os.sep}site-packages{os.sep}" in filename or f"{os.sep}dist-packages{os.sep}" in filename
    return not packages and not filename.startswith(_STANDARD_LIBRARY)


def _users_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not _is_users(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return None  # a library draws while it is imported: that is no doing of the line that imports it
        frame = frame.f_back
    return frame


def _shown(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    seed = args[0] if args else next(iter(kwargs.values()), None)
    if seed is None:
        return ""
    return repr(seed)[:80] if isinstance(seed, (int, float, str, list, tuple)) else type(seed).__name__


def _note(sink: Sink, what: str, value: str) -> None:
    frame = _users_frame(sys._getframe(3))
    if frame is None or (not value and what in repeatable):
        return
    key = (what, frame.f_code.co_filename, frame.f_lineno, value)
    if key not in _noted and len(_noted) < _MOST:
        _noted.add(key)
        sink.write({"k": "source", "what": what, "file": key[1], "line": key[2], "value": value})


def watch(module: Any, name: str, sink: Sink) -> None:
    """Wrap the functions of ``module`` that FUNCTIONS names."""
    for dotted in FUNCTIONS[name]:
        holder = module
        for part in dotted.split(".")[:-1]:
            holder = getattr(holder, part)
        _wrap(holder, dotted.split(".")[-1], f"{name}.{dotted}", sink)


def _wrap(holder: Any, name: str, what: str, sink: Sink) -> None:
    function = getattr(holder, name)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        sink.guarded(what, lambda: _note(sink, what, _shown(args, kwargs)))
        return function(*args, **kwargs)

    setattr(holder, name, wrapper)
