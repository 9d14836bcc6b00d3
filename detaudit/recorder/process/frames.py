"""Find the user's code in a call stack: the nearest frame that is not part of a library."""

from __future__ import annotations

import os
import sys

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from types import FrameType
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
"""Parts of a path that installed packages have in a usual environment."""

_PICKLED = "<dynamic-code>"
"""The file of code that cloudpickle sent to this process by value, as joblib does with what a script defines."""

_DECORATORS = ("func", "inner", "wrapped", "decorated")
"""What functions around a function are called, beside ``wrapper``."""

_known: dict[str, bool] = {}
_installed: dict[str, set[str]] = {}


def is_ours(frame: FrameType | None) -> bool:
    """Return whether a frame belongs to detaudit."""
    return frame is not None and frame.f_code.co_filename.startswith(_OURS)


def unseen_by_warnings(function: Function) -> Function:
    """Let warnings be about the line that calls a function, not about one in it: Python passes over its own imports.

    Every function of ours that calls the original one needs it. See ``warnings._is_internal_frame``.
    """
    code: Any = function.__code__
    function.__code__ = code.replace(co_filename=_OURS + "importlib._bootstrap")
    return function


def file_of(frame: FrameType) -> str:
    """Return the file of a frame's code: if that was pickled, the file of the module that defines the function."""
    file: str = frame.f_code.co_filename
    if file != _PICKLED:
        return file
    defined = frame.f_globals.get("__file__")
    return defined if isinstance(defined, str) and os.path.isabs(defined) else file


def is_user_code(filename: str) -> bool:
    """Return whether a file is the user's own code: neither a library nor detaudit."""
    if filename not in _known:
        libraries = filename.startswith((_STANDARD_LIBRARY, _OURS, "<frozen"))
        _known[filename] = not libraries and not is_of_package(filename)
    return _known[filename]


def is_of_package(path: str) -> bool:
    """Return whether a file was installed with a package, wherever that is."""
    return any([part in path for part in PACKAGES]) or is_recorded(path)


def is_recorded(path: str) -> bool:
    """Return whether a package's RECORD names a file, as with ``pip install --target FOLDER``.

    The user's own files may lie beside it.
    """
    parts = path.split(os.sep)
    return any([os.sep.join(parts[end:]) in _installed_in(os.sep.join(parts[:end])) for end in range(1, len(parts))])


def _installed_in(folder: str) -> Container[str]:
    """Return the files of packages in a folder that Python imports from."""
    known = _installed.get(folder)
    # What Python has listed itself: listing the folder again would be a call that the script did not make.
    names = getattr(sys.path_importer_cache.get(folder), "_path_cache", ()) if known is None else ()
    if known is not None or not names:
        return known or ()
    records = [os.path.join(name, "RECORD") for name in names if name.endswith(".dist-info")]
    known = _installed[folder] = {*records}  # at once, because opening a file comes back here
    for record in records:
        try:
            with open(os.path.join(folder, record), encoding="utf-8", errors="surrogateescape") as file:
                known.update([line.rpartition(",")[0].rpartition(",")[0].replace("/", os.sep) for line in file])
        except OSError as error:
            guard.pass_on(error)
    return known


def is_standard_library(filename: str) -> bool:
    """Return whether a file belongs to Python's standard library."""
    return filename.startswith((_STANDARD_LIBRARY, "<frozen")) and not is_of_package(filename)


def user_frame(frame: FrameType | None, through: Container[str] | None = None) -> FrameType | None:
    """Return the nearest frame of user code that is responsible for a call, or None if there is none.

    If ``through`` is given, only these top-level modules may lie between the call and the user's frame. User code is
    not responsible for what a library does while it is imported, or multiprocessing in a child process.
    """
    unnamed = None  # generated code, such as a dataclass's __init__, or a script that is not a file
    passed = False
    while frame is not None:
        filename = frame.f_code.co_filename
        filename = filename if filename[:1] != "<" else file_of(frame)
        if is_user_code(filename):
            if not filename.startswith("<"):
                return frame
            unnamed = unnamed or frame
        elif filename.startswith("<frozen importlib") or _starts_a_child(frame):
            break
        elif through is not None and (passed if is_ours(frame) else top_module(frame) not in through):
            return None  # another library made the call, or a function that the recorder hooks itself
        passed = passed or not is_ours(frame)
        frame = frame.f_back
    return unnamed


def is_imported(frame: FrameType | None) -> bool:
    """Return whether a library makes a call while it is imported."""
    while frame is not None and not is_user_code(file_of(frame)):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def top_module(frame: FrameType) -> str:
    """Return the top-level module that a frame's code belongs to."""
    name: str | None = frame.f_globals.get("__name__")  # None in what a program compiles itself
    return (name or "").split(".")[0]


def called(frame: FrameType | None, user_frame: FrameType) -> str:
    """Return the function of a library that the user's line called, and that called this frame; "" if there is none."""
    name = ""
    while frame is not None and frame is not user_frame:
        code = frame.f_code
        kind, _, function = getattr(code, "co_qualname", code.co_name).rpartition(".")  # since Python 3.11
        if function == "__init__":
            kind, function = "", kind.rpartition(".")[2]
        elif not kind and function[:1] == "_" and function.lstrip("_") in frame.f_globals:
            function = function.lstrip("_")  # os.walk returns a generator of os._walk
        holder = offered(frame, kind or function)
        generated = code.co_filename[:1] == "<" and not is_standard_library(code.co_filename)
        decorates = function in _DECORATORS or "wrapper" in function or kind.endswith("<locals>")
        public = function[:1] not in ("", "_", "<") and not (generated or decorates or is_ours(frame))
        if public or (function == "__iter__" and holder):
            name = holder if holder and not kind else f"{holder or top_module(frame)}.{function}"
        frame = frame.f_back
    return name


def offered(frame: FrameType, name: str) -> str:
    """Return the shortest name by which a library offers this function or class, such as ``scipy.stats.bootstrap``."""
    top, *parts = (frame.f_globals.get("__name__") or "").split(".")
    parts, value = [top, *[part for part in parts if part != "src" and part[:1] != "_"]], frame.f_globals.get(name)
    for end in range(1, len(parts) + 1):
        holder = sys.modules.get(".".join(parts[:end]))
        if value is not None and holder is not None and vars(holder).get(name) is value:
            return ".".join([*parts[:end], name])
    return ""


def _starts_a_child(frame: FrameType) -> bool:
    # In a forked child, multiprocessing's frame lies on top of whatever the parent was doing.
    return frame.f_code.co_name == "_bootstrap" and frame.f_globals.get("__name__") == "multiprocessing.process"


def location(frame: FrameType) -> tuple[str, int]:
    """Return the file and the line of a frame. Never keep a frame itself: it holds the user's objects."""
    return file_of(frame), frame.f_lineno
