"""Find the edit that fixes a line, given what it does, and whether a constant seed there would do harm."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.source import fix_values
from detaudit.auditor.source.fix_orders import completion_order, listing, taken_set
from detaudit.auditor.source.fix_values import moving_seed, salted_hash, uninitialized_memory, unseeded
from detaudit.auditor.source.source_edits import Fix, Page
from detaudit.model import Edit, SourceKind

_Rule = Callable[[Page, ast.AST], Fix | None]

RULES: dict[SourceKind, _Rule] = {
    SourceKind.SET_ORDER: taken_set,
    SourceKind.OBJECT_SET_ORDER: taken_set,
    SourceKind.LISTING_ORDER: listing,
    SourceKind.UNSEEDED: unseeded,
    SourceKind.CLOCK: moving_seed,
    SourceKind.PROCESS_ID: moving_seed,
    SourceKind.COMPLETION_ORDER: completion_order,
    SourceKind.COMPLETION_ORDER_OPTION: completion_order,
    SourceKind.UNINITIALIZED: uninitialized_memory,
    SourceKind.HASH: salted_hash,
}
"""By kind, what looks at a node: None if it is none of that kind, an empty fix if nothing safe is known."""

_SEEDS = frozenset({SourceKind.UNSEEDED, SourceKind.CLOCK, SourceKind.PROCESS_ID})

_MOST = 20
"""The most places to fix in one statement."""


@dataclass(frozen=True)
class Rewrite:
    """An edit of whole lines, without their ends: the lines from ``first`` on, and what replaces them.

    ``needs`` are the imports that the new lines need and the file does not have.
    """

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    needs: tuple[str, ...] = ()


def rewritten(text: bytes | str, line: int, kind: SourceKind) -> Rewrite | None:
    """Return what fixes everything of a kind in the statement at a line, None if no safe edit is known.

    The edited lines may be others: an expression may begin above that line, and a seed may be computed elsewhere.
    """
    rule = RULES.get(kind)
    try:
        return _rewritten(Page.of(text), line, rule) if rule else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def is_repeated(text: bytes | str, line: int, kind: SourceKind) -> bool:
    """Whether a line makes or seeds a generator, and may be reached more than once with no name to number that.

    A constant seed there repeats the same numbers, so no edit of the line is known that is safe.
    """
    if kind not in _SEEDS:
        return False
    try:
        page = Page.of(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(fix_values.is_repeated(page, node) for node in page.at(line))


def edit(root: Path, file: str, line: int, kind: SourceKind) -> Edit | None:
    """Return the edit of a file that fixes what is of this kind at a line, None if no safe one is known."""
    try:
        found = rewritten((root / file).read_bytes(), line, kind)
    except OSError:
        return None
    return Edit(file=file, line=found.first, old=found.old, new=found.new, needs=found.needs) if found else None


def is_repeated_in(root: Path, file: str, line: int, kind: SourceKind) -> bool:
    """Return the same of a line of a file; False if it cannot be read."""
    try:
        return is_repeated((root / file).read_bytes(), line, kind)
    except OSError:
        return False


def _rewritten(before: Page, line: int, rule: _Rule) -> Rewrite | None:
    page, needs = before, list[str]()
    for _ in range(_MOST):
        found = [(node, fix) for node in page.at(line) if (fix := rule(page, node)) is not None]
        if not found:
            return _difference(before.lines, page.lines, needs)
        if not all(fix.edits and page.is_placed(node) for node, fix in found):
            return None
        # Apply one edit at a time: it may move the nodes inside it, or make their fix unnecessary.
        edits = found[0][1].edits
        needs += [one for one in found[0][1].needs if one not in needs]
        page, line = page.edited(edits), page.moved(line, edits)
    return None


def _difference(old: list[str], new: list[str], needs: list[str]) -> Rewrite | None:
    if old == new:
        return None
    shorter = min(len(old), len(new))
    above = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    below = next((n for n in range(shorter - above) if old[-1 - n] != new[-1 - n]), shorter - above)
    return Rewrite(above + 1, tuple(old[above : len(old) - below]), tuple(new[above : len(new) - below]), tuple(needs))
