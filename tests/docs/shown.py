"""Compare what a page shows of an output with what a command printed, but for what differs from run to run."""

import re
from collections.abc import Sequence

_CHANGING = re.compile(
    r"(?P<folder>\d{8}-\d{6}-[0-9a-f]{8})"  # a results folder
    r"|(?P<digest>\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}\b)"
    r"|(?P<number>-?\d[\d,]*\.\d+(?:e[+-]?\d+)?)"
    r"|(?P<rule>-{3,})"
    r"|(?P<trials>(?:\d+|\.\.\.) trials?, (?:\d+|\.\.\.) runs?)"
    r"|(?P<total>(?:\d+|\.\.\.) runs? in total)"
)
_OF_RUNS = re.compile(r"\s*(RUN|TRIAL|-{3,})\s|\s*\d+\s{2,}\S")
"""How the lines of a table of runs begin: how far runs go, and so what it has, depends on how fast the machine is."""


def normal(line: str) -> str:
    """Return a line without what differs from run to run: digests, results folders, and most numbers."""
    return " ".join(_CHANGING.sub(lambda found: f"<{found.lastgroup}>", line).split())


def missing(shown: Sequence[str], printed: str) -> str | None:
    """Return the first line of those shown that was not printed after those before it, None if all were.

    ``...`` stands for any text within a line; as a line, for any lines. Tables of runs are not compared.
    """
    lines = iter([normal(line) for line in printed.splitlines()])
    for line in (line for line in shown if line.strip() and not _OF_RUNS.match(line)):
        pattern = ".*".join(re.escape(part.strip()) for part in normal(line).split("..."))
        if line.strip() != "..." and not any(re.search(rf"^\s*{_spaced(pattern)}\s*$", one) for one in lines):
            return line
    return None


def _spaced(pattern: str) -> str:
    return pattern.replace(".*", r"\s*.*\s*")
