"""Text that every format can hold, whatever a script wrote."""

import re

_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
"""What moves a cursor or gives a colour (ECMA-48)."""

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document can hold, even escaped (XML 1.0, Char); a lone surrogate is none of UTF-8 either."""


def plain(text: str) -> str:
    """Return ``text`` without a terminal's sequences, lines ended by a line feed, and what is no text escaped."""
    text = _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _ILLEGAL.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def line(text: str) -> str:
    """Return ``text`` as one plain line."""
    return " ".join(filter(None, (part.strip() for part in plain(text).split("\n"))))
