"""The rules of edits: one table, and the edit that fixes a line, given what it does."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from detaudit.model import Edit, SourceKind
from detaudit.notebooks.cells import code_of
from detaudit.rules import generators
from detaudit.rules.frameworks import (
    DatasetShuffle,
    EnvironmentSeed,
    EstimatorSeed,
    LateSeed,
    LayerSeed,
    LoaderGenerator,
    PassedSeed,
    RowSeed,
)
from detaudit.rules.generators import (
    BoosterSeed,
    GeneratorOnce,
    GlobalGenerators,
    MovingSeed,
    OptionSeed,
    OwnGenerator,
    UnseededGenerator,
    WorkerSeed,
    is_repeated_call,
)
from detaudit.rules.order import AddressOrder, CompletionOrder, ListingOrder, OneWorker, RowOrder, SetOrder
from detaudit.rules.rule import Rule
from detaudit.rules.times import indexes
from detaudit.rules.values import SaltedHash, UninitializedMemory
from detaudit.source.text import SourceText

GLOBAL = GlobalGenerators()
ONCE = GeneratorOnce()

TABLE: tuple[Rule, ...] = (
    UnseededGenerator(),
    ONCE,
    GLOBAL,
    WorkerSeed(),
    OwnGenerator(),
    LateSeed(),
    MovingSeed(),
    BoosterSeed(),
    OptionSeed(),
    SetOrder(),
    ListingOrder(),
    CompletionOrder(),
    AddressOrder(),
    DatasetShuffle(),
    LayerSeed(),
    EstimatorSeed(),
    LoaderGenerator(),
    EnvironmentSeed(),
    RowSeed(),
    RowOrder(),
    OneWorker(),
    UninitializedMemory(),
    SaltedHash(),
)
"""All rules. Of several for one kind, the first that has an edit is taken."""

RULES: dict[SourceKind, list[Rule]] = {
    kind: [rule for rule in TABLE if kind in rule.kinds]
    for kind in sorted({kind for rule in TABLE for kind in rule.kinds})
}
"""The rules by the kind of line that they are about."""

_SEEDS = frozenset({SourceKind.UNSEEDED, SourceKind.CLOCK, SourceKind.PROCESS_ID})

SEEDING = frozenset(rule.name for rule in TABLE if rule.kinds & _SEEDS)
"""Rules whose edits seed something: at the wrong place, a seed makes draws repeat."""

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
    return next((rewrite for _, rewrite in _rewrites(text, line, RULES.get(kind, ()))), None)


def is_repeated(text: bytes | str, line: int, kind: SourceKind) -> bool:
    """Whether a line makes or seeds a generator, and may be reached more than once with no name to number that.

    A constant seed there repeats the same numbers; False if another edit is known that is safe.
    """
    if kind not in _SEEDS:
        return False
    try:
        page = SourceText.of(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(is_repeated_call(page, node) for node in page.at(line)) and rewritten(text, line, kind) is None


def about(kind: SourceKind, takers: Iterable[str] = ()) -> Sequence[Rule]:
    """Return the rules for a kind of line; those of a line with ``takers`` (see Source) begin with them."""
    rules = RULES.get(kind, [])
    return [*(EstimatorSeed.of(one) for one in takers), *rules]


def passed(takers: Iterable[str]) -> Sequence[Rule]:
    """Return rules for a line with ``takers`` that is no call of theirs: they may get their seed by one that it has."""
    return [PassedSeed.of(one) for one in takers]


def edit(
    root: Path, file: str, line: int, kind: SourceKind, takers: Iterable[str] = (), sets: Iterable[str] = ()
) -> Edit | None:
    """Return the edit of a file that fixes what is of this kind at a line, None if no safe one is known.

    ``sets`` are variables that were seen to be sets.
    """
    rules = [*([SetOrder(sets)] if sets and kind is SourceKind.SET_ORDER else []), *about(kind, takers)]
    return next(edits(root, file, line, rules), None)


def edits(root: Path, file: str, line: int, rules: Iterable[Rule]) -> Iterator[Edit]:
    """Yield the edit that each of these rules has for the statement at a line of a file."""
    with suppress(OSError):
        for rule, one in _rewrites(code_of(root / file), line, rules):
            yield Edit(file=file, line=one.first, old=one.old, new=one.new, needs=one.needs, rule=rule.name)


def places(text: bytes, rules: Sequence[Rule] = TABLE) -> list[tuple[int, Rule]]:
    """Return the lines of a text that a rule is about, whether or not a run showed that they matter."""
    try:
        page = SourceText.of(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    nodes = [node for node in ast.walk(page.reader.tree) if isinstance(node, ast.expr | ast.stmt)]
    lines = {(node.lineno, n) for node in nodes for n, rule in enumerate(rules) if rule.fix(page, node) is not None}
    return [(line, rules[n]) for line, n in sorted(lines)]


def is_reached_once(root: Path, file: str, line: int) -> bool:
    """Whether the code of a file shows that a line of it runs once; False if it cannot be read."""
    try:
        page = SourceText.of(code_of(root / file))
        return any(indexes(page.reader, node) == () for node in page.at(line)[:1])
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False


def has_workers(text: bytes) -> bool:
    """Whether a file may start threads, processes or tasks; False if it cannot be parsed."""
    try:
        return generators.has_workers(SourceText.of(text))
    except (SyntaxError, ValueError, RecursionError):
        return False


def is_repeated_in(root: Path, file: str, line: int, kind: SourceKind) -> bool:
    """Return the same of a line of a file; False if it cannot be read."""
    try:
        return is_repeated(code_of(root / file), line, kind)
    except OSError:
        return False


def _rewrites(text: bytes | str, line: int, rules: Iterable[Rule]) -> Iterator[tuple[Rule, Rewrite]]:
    try:
        page = SourceText.of(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for rule in rules:
        with suppress(SyntaxError, ValueError, RecursionError):
            rewrite = _rewritten(page, line, rule)
            if rewrite is not None:
                yield rule, rewrite


def _rewritten(before: SourceText, line: int, rule: Rule) -> Rewrite | None:
    page, needs = before, list[str]()
    for _ in range(_MOST):
        fixes = [(node, fix) for node in page.at(line) if (fix := rule.fix(page, node)) is not None]
        if not fixes:
            return _difference(before.lines, page.lines, needs)
        if not all(fix.edits and page.is_placed(node) for node, fix in fixes):
            return None
        # Apply one edit at a time: it may move the nodes inside it, or make their fix unnecessary.
        edits = fixes[0][1].edits
        needs += [one for one in fixes[0][1].needs if one not in needs]
        page, line = page.edited(edits), page.moved(line, edits)
    return None


def _difference(old: list[str], new: list[str], needs: list[str]) -> Rewrite | None:
    if old == new:
        return None
    shorter = min(len(old), len(new))
    above = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    below = next((n for n in range(shorter - above) if old[-1 - n] != new[-1 - n]), shorter - above)
    if above + below == len(old):  # lines are only added: the one below says where, whatever else was added above it
        below = max(0, below - 1)
    return Rewrite(above + 1, tuple(old[above : len(old) - below]), tuple(new[above : len(new) - below]), tuple(needs))
