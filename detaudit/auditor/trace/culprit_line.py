"""Which line of the user's code is to blame where a difference came in from before the framework."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from detaudit.auditor.source import rewrite
from detaudit.auditor.source.scan import EMPTY, HASH, ID, SET, UNSEEDED
from detaudit.auditor.source.suspect_code import scanned
from detaudit.model import CauseClass, Edit, Source

_OF_KIND: dict[str, CauseClass] = {
    "seed": "seed",
    "clock": "seed",
    "process-id": "seed",
    "unseeded": "seed",
    "entropy": "seed",
    "listing-order": "order",
    "listing-files": "data",
    "completion-order": "threads",
    "completion-order-option": "threads",
}
_OF_CODE: dict[str, CauseClass] = {SET: "hash", HASH: "hash", ID: "address", UNSEEDED: "seed", EMPTY: "memory"}
_EDITS = {
    "clock": "clock",
    "process-id": "pid",
    "unseeded": "unseeded",
    "listing-order": "listing",
    "completion-order": "arrival",
    "completion-order-option": "arrival",
    SET: "set",
    HASH: "hash",
    ID: "id",
    UNSEEDED: "unseeded",
    EMPTY: "memory",
}

_ORDERS = {"listing-order", "completion-order", "completion-order-option", "listing-files"}
"""Kinds of lines that bring an order, and no values."""


def kind_of(source: Source, root: Path) -> str:
    """Return what a line does: its kind as it was seen, or what the code alone shows; ``""`` where neither tells."""
    if source.kind != "candidate":
        return source.kind
    return next((kind for line, kind, _ in scanned(root / source.file) if line == source.line), "")


def cause_of(source: Source, root: Path) -> CauseClass:
    """Return the class of cause that a line is of."""
    kind = kind_of(source, root)
    if kind == SET and _of_objects(source, root):
        return "address"
    return _OF_KIND.get(kind) or _OF_CODE.get(kind) or "data"


def _of_objects(source: Source, root: Path) -> bool:
    """Whether a set evidently holds objects, which only keep their order where no set is made of them."""
    edit = edit_of(source, root)
    return edit is not None and any("dict.fromkeys(" in line for line in edit.new)


def edit_of(source: Source, root: Path) -> Edit | None:
    """Return the edit that mends a line, None where no safe one is known."""
    return edit_at(root, source.file, source.line, _EDITS.get(kind_of(source, root), ""))


def edit_at(root: Path, file: str, line: int, kind: str) -> Edit | None:
    """Return the edit of what is of this kind at a line; see rewrite.RULES for the kinds."""
    try:
        found = rewrite.rewritten((root / file).read_bytes(), line, kind)
    except OSError:
        return None
    if found is None:
        return None
    return Edit(file=file, first=found.first, old=found.old, new=found.new, needs=found.needs)


def to_blame(
    sources: Sequence[Source], root: Path, *, orders_only: bool, near: Iterable[tuple[str, int]] = ()
) -> Source | None:
    """Return the line among ``sources`` that explains it best, None where none does.

    ``near`` are lines at which a variable was seen to differ. Where the runs only took existing values in another
    order, a line that brings values is not to blame, unless no other is there.
    """
    places = set(near)
    fitting = [source for source in sources if not orders_only or _brings_order(source, root)] or list(sources)
    fitting.sort(key=lambda source: source.kind == "seed")  # a seed that is given may follow from another order
    met = [source for source in fitting if (source.file, source.line) in places]
    return next(iter([*met, *fitting]), None)


def _brings_order(source: Source, root: Path) -> bool:
    return kind_of(source, root) in _ORDERS | {SET, HASH, ID}
