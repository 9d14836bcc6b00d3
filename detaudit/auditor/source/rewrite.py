"""Which edit of a line mends it, given what is wrong there."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from detaudit.auditor.source.fix_orders import arrival, listing, taken_set
from detaudit.auditor.source.fix_values import fresh_memory, moving_seed, salted_hash, unseeded
from detaudit.auditor.source.source_edits import Mend, Page

_Rule = Callable[[Page, ast.AST], Mend | None]

RULES: dict[str, _Rule] = {
    "set": taken_set,
    "listing": listing,
    "unseeded": unseeded,
    "clock": moving_seed,
    "pid": moving_seed,
    "arrival": arrival,
    "memory": fresh_memory,
    "hash": salted_hash,
}
"""By kind, what looks at a node: None if it is none of that kind, an empty mend where nothing safe is known."""

_MOST = 20
"""Places that are mended in one statement."""


@dataclass(frozen=True)
class Rewrite:
    """An edit of whole lines, without their ends: what stands from line ``first`` on, and what shall stand there.

    ``needs`` are the imports that the new lines need and the file does not have.
    """

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    needs: tuple[str, ...] = ()


def rewritten(text: bytes | str, line: int, kind: str) -> Rewrite | None:
    """Return what mends all of a kind in the statement at a line, None where no safe edit is known.

    The lines may be others than that one: an expression may begin above it, and a seed be computed elsewhere.
    """
    rule = RULES.get(kind)
    try:
        return _rewritten(Page.of(text), line, rule) if rule else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def _rewritten(before: Page, line: int, rule: _Rule) -> Rewrite | None:
    page, needs = before, list[str]()
    for _ in range(_MOST):
        found = [(node, mend) for node in page.at(line) if (mend := rule(page, node)) is not None]
        if not found:
            return _difference(before.lines, page.lines, needs)
        if not all(mend.edits and page.is_placed(node) for node, mend in found):
            return None
        # One at a time: what is within it stands elsewhere afterwards, or needs no mending any more.
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
