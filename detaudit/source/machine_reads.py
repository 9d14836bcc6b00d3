"""What a script reads of its machine that is equal in runs one after the other, and another elsewhere or tomorrow."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from detaudit.model import Source, SourceKind
from detaudit.notebooks.cells import code_of
from detaudit.source.randomness import HASH, ID, MOST_BYTES, SET, scanned
from detaudit.source.text import SourceText, last

_CLOCKS = {
    *(f"time.{name}" for name in ("time", "time_ns", "localtime", "gmtime", "ctime", "asctime", "strftime")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
}

_LISTINGS = {"listdir", "scandir", "glob", "iglob", "iterdir", "rglob"}


def is_listing(page: SourceText, call: ast.Call) -> bool:
    """Whether a call lists files, and their order is used."""
    walks = page.full(call.func) in ("os.walk", "os.fwalk")
    return walks or (last(call.func) in _LISTINGS and not page.reader.forgotten(call))


def reads(root: Path, files: Iterable[str]) -> tuple[Source, ...]:
    """Return the lines of these files that take an order of files, sets, hashes or addresses, or the date or time.

    ``files`` are relative to ``root`` or absolute; one that cannot be read or parsed has none. A clock that only
    measures how long something took does not count.
    """
    return tuple(
        Source(file=file, line=line, kind=kind, suspect=True)
        for file in files
        for line, kind in sorted({*_of_code(root / file), *_of_calls(root / file)})
    )


def _of_code(path: Path) -> Iterator[tuple[int, SourceKind]]:
    yield from ((line, kind) for line, kind, _ in scanned(path) if kind in (SET, HASH, ID))


def _of_calls(path: Path) -> Iterator[tuple[int, SourceKind]]:
    try:
        text = code_of(path)
        page = SourceText.of(text) if len(text) <= MOST_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    if page is None:
        return
    for node in ast.walk(page.reader.tree):
        if isinstance(node, ast.Call):
            if is_listing(page, node):
                yield node.lineno, SourceKind.LISTING_ORDER
            if page.full(node.func) in _CLOCKS and not _is_timer(page, node):
                yield node.lineno, SourceKind.CLOCK


def _is_timer(page: SourceText, call: ast.Call) -> bool:
    """Whether the time is only subtracted from another, or another from it."""
    parent = page.reader.parent(call)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Sub)
    if not (isinstance(parent, ast.Assign) and len(parent.targets) == 1):
        return False
    name = ast.unparse(parent.targets[0])
    uses = [
        node
        for node in ast.walk(page.reader.tree)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == name
    ]
    parents = [page.reader.parent(node) for node in uses]
    return all(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) for one in parents)
