"""What two runs printed, but for times, paths, addresses and process IDs."""

import re
from collections import Counter
from pathlib import Path

from detaudit import redact

MOST_BYTES = 8 * 2**20
"""Of a log, as much is compared."""

MOST_COMPARED = 2000
"""Of a line that differs, as many characters are compared."""

MOST_SHOWN = 160

_UNIT = r"(?:ns|us|µs|ms|s|sec|secs|seconds?|min|mins|minutes?|h|hours?)"
_VOLATILE = re.compile(
    r"0x[0-9a-f]+"
    r"|(?<![\w.~-])(?:[a-z]:)?(?:[\w.~-]*[/\\])+[\w.~-]*"  # paths, URLs, and dates with slashes
    r"|\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?[ap]m)?"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|(?<!\d)\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?\w{0,20}/" + _UNIT + r"\b"
    r"|(?<!\d)\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?" + _UNIT + r"(?:/\w+|\b)"
    r"|\b(?:pid|process|port)\W{0,3}\d+"
    r"|\b(?:time|elapsed|took|duration|date|runtime|eta|throughput|speed)\w*\W{0,5}[\d.:]+"
    r"|(?<![\d.])1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b"  # since 1970
    r"|\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b[ .]*\d*"
    r"|\x1b\[[0-9;]*[A-Za-z]",
    re.IGNORECASE,
)


def difference(a: Path, b: Path) -> tuple[str, str] | None:
    """Return the first line of each log that the other lacks, ``""`` if it has none; None if there are none.

    The order of lines does not count: threads and processes print in any order.
    """
    lines, others = _lines(a), _lines(b)
    ours, theirs = _compared(lines, others), _compared(others, lines)
    counts = [Counter(key for key, _ in found) for found in (ours, theirs)]
    alone = (_first(ours, counts[0] - counts[1]), _first(theirs, counts[1] - counts[0]))
    return alone if any(alone) else None


def _compared(lines: list[str], others: list[str]) -> list[tuple[str, str]]:
    """Return the lines that the others lack, each after what is compared of it."""
    alone = Counter(lines) - Counter(others)
    return [(_VOLATILE.sub("*", line[:MOST_COMPARED]), line[:MOST_SHOWN]) for line in lines if alone[line]]


def _lines(log: Path) -> list[str]:
    """Return the lines of a log that are not empty; of a progress bar, its last state."""
    try:
        with log.open("rb") as file:
            text = file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return []
    shown = (line.rstrip("\r").rpartition("\r")[2].strip() for line in text.split("\n"))
    return [line for line in shown if line]


def _first(lines: list[tuple[str, str]], alone: Counter[str]) -> str:
    return redact.text(next((line for key, line in lines if alone[key]), ""))
