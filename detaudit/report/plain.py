"""Text that is valid and harmless in every format, whatever a script wrote."""

import re

_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
"""Sequences that move a cursor or set a color (ECMA-48)."""

_ILLEGAL = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Characters that are not valid in XML, even escaped (XML 1.0, Char); UTF-8 has no lone surrogates either.

Others control a terminal, end a line, or change the direction of the text around them (UAX #9).
"""

_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\[)", re.MULTILINE)
"""How a workflow command of GitHub begins, whose runner looks for them in all that is printed."""


def plain(text: str) -> str:
    """Return ``text`` with line feeds as line ends, without terminal sequences, and with what is not plain escaped."""
    text = _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    text = _ILLEGAL.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)
    return _COMMAND.sub(lambda match: f"{match[1] or ''}\\x{ord(match[0][-1]):x}", text)


def line(text: str) -> str:
    """Return ``text`` as one plain line."""
    return " ".join(filter(None, (part.strip() for part in plain(text).split("\n"))))


def row(text: str) -> str:
    """Return ``text`` as one plain line that keeps its spaces."""
    return plain(text).replace("\n", " ")
