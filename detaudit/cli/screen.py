"""What is known about the terminal that output goes to: its width, and whether it wants colors."""

import os
import sys
from typing import TextIO

FALLBACK = 80
"""The width of a terminal that does not say it."""


def color() -> bool | None:
    """Return whether output has colors, None if a terminal has them and a pipe has none.

    NO_COLOR (https://no-color.org) and a dumb terminal have none, FORCE_COLOR (https://force-color.org) has them
    anywhere; a variable that is set but empty counts as not set.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def width(stream: TextIO | None = None) -> int | None:
    """Return how many columns lines on ``stream`` (stdout) may have, None if nothing limits them.

    That is COLUMNS if it is set, then the width of the terminal. A pipe and a file have no width, so that programs
    find each line whole.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    stream = sys.stdout if stream is None else stream
    if stream is None or not stream.isatty():  # Python has no stdout if it is started with a closed one
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or FALLBACK
    except OSError:
        return FALLBACK
