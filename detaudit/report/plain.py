"""Text that is valid in every format, whatever a script wrote."""

import re

_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
"""Sequences that move a cursor or set a color (ECMA-48)."""

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that are not valid in XML, even escaped (XML 1.0, Char); UTF-8 has no lone surrogates either."""


def plain(text: str) -> str:
    """Return ``text`` without terminal sequences, with line feeds as line ends, and with invalid characters escaped."""
    text = _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _ILLEGAL.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def line(text: str) -> str:
    """Return ``text`` as one plain line."""
    return " ".join(filter(None, (part.strip() for part in plain(text).split("\n"))))
