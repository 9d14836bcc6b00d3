"""Whose code a call comes from: the nearest frame of the user's own, past the libraries between."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from types import FrameType

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)

_known: dict[str, bool] = {}


def is_ours(frame: FrameType | None) -> bool:
    """Whether a frame belongs to detaudit itself."""
    return frame is not None and frame.f_code.co_filename.startswith(_OURS)


def is_users(filename: str) -> bool:
    """Whether a file is the user's own code: no library, and nothing of ours."""
    if filename not in _known:
        libraries = filename.startswith((_STANDARD_LIBRARY, _OURS, "<frozen"))
        _known[filename] = not libraries and not any([part in filename for part in _PACKAGES])
    return _known[filename]


def is_standard(filename: str) -> bool:
    """Whether a file belongs to Python's own library."""
    return filename.startswith((_STANDARD_LIBRARY, "<frozen")) and not any([part in filename for part in _PACKAGES])


def users_frame(frame: FrameType | None, through: Container[str] | None = None) -> FrameType | None:
    """Return the nearest frame of the user's own code, None where the call is no doing of it.

    ``through`` names the only top-level modules that may stand between. A library that is being imported, and what
    multiprocessing runs in a child, are no doing of the line that stands further up.
    """
    unnamed = None  # generated code, such as a dataclass's __init__, or a script that is no file
    passed = False
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_users(filename):
            if not filename.startswith("<"):
                return frame
            unnamed = unnamed or frame
        elif filename.startswith("<frozen importlib") or _starts_a_child(frame):
            break
        elif through is not None and (passed if is_ours(frame) else top_module(frame) not in through):
            return None  # another library asked, or a function that is watched itself
        passed = passed or not is_ours(frame)
        frame = frame.f_back
    return unnamed


def top_module(frame: FrameType) -> str:
    """Return the top-level module that a frame's code belongs to."""
    name: str = frame.f_globals.get("__name__", "")
    return name.split(".")[0]


def _starts_a_child(frame: FrameType) -> bool:
    # Of multiprocessing: in a forked child, what the parent was doing stands above it.
    return frame.f_code.co_name == "_bootstrap" and frame.f_globals.get("__name__") == "multiprocessing.process"


def place(frame: FrameType) -> tuple[str, int]:
    """Return the file and the line of a frame. Frames themselves are never kept: they hold the user's objects."""
    return frame.f_code.co_filename, frame.f_lineno
