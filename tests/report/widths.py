"""Which lines of a text are wider than a terminal."""

import re

import click
from rich.cells import cell_len

ONE_WORD = re.compile(r" *(\S+( \S+)*  +|[-|#>] )?\S+( \\)?$")
"""A word alone, or behind a label or a sign."""


def too_wide(text: str, width: int) -> list[str]:
    """Return the lines that are too wide, but for a word that no line has room for, which a terminal breaks."""
    lines = click.unstyle(text).splitlines()
    return [line for line in lines if cell_len(line) > width and not ONE_WORD.fullmatch(line)]
