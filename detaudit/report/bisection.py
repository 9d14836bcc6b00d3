"""What reports say about a bisection: its trials, and the flags that are needed."""

from collections import Counter
from collections.abc import Iterator

from detaudit.model import Alternative, Bisection, BisectOutcome, FailingFlag, Group, LineToFix, NeededFlag, Status
from detaudit.model.number import count
from detaudit.report import trials
from detaudit.report.blocks import Table
from detaudit.report.messages import applicability, by_hand, costs, differences, problems, sources
from detaudit.report.messages.evidence import begins_later, bit_identical, may_go_unnoticed
from detaudit.report.messages.wording import shortened

HEADERS = (*trials.HEADERS, "RUNS MATCH", "FLAGS")
MOST_FLAGS = 3


def result(audit: Bisection) -> trials.Result:
    """Return a bisection in words."""
    explained = audit.interrupted or audit.differed_in is not None
    inconclusive = audit.outcome is BisectOutcome.INCONCLUSIVE and not explained
    differing = last_unfixed(audit)
    return trials.Result(
        table=_table(audit),
        outcome=audit.outcome,
        sentence=_sentence(audit),
        evidence=_evidence(audit),
        differing=differing,
        failed=next(iter(audit.groups), None) if inconclusive else None,
        details=[(f"{one.flag}: {one.title}", list(needed_lines(one))) for one in audit.needed or ()],
        notes=list(_notes(audit)),
        source=next(iter(differing.sources), None) if differing else None,
    )


def _table(audit: Bisection) -> Table:
    found = frozenset(flag for one in audit.needed or () for flag in (one.flag, *one.requires))
    rows = [_row(group, found) for group in audit.groups]
    return Table(HEADERS, rows, "* the set found" if any(row[-1].startswith("* ") for row in rows) else "")


def _row(group: Group, found: frozenset[str]) -> list[str]:
    furthest = next((run for run in group.runs if run.ranks and run.status is Status.OK), None)
    first = furthest or next((run for run in group.runs if run.ranks), None)
    flags = shortened(group.recipe.flags, most=MOST_FLAGS) or "(none)"
    star = "* " if found and frozenset(group.recipe.flags) == found else ""
    return [*trials.cells(group, len(group.runs), first), trials.match(group), star + flags]


def _sentence(audit: Bisection) -> str:
    total = trials.total(audit)
    match audit.outcome:
        case BisectOutcome.FIXED:
            needed = len(audit.needed or ())
            return f"{count(needed, 'flag')} {'makes' if needed == 1 else 'make'} it deterministic {total}"
        case BisectOutcome.ALREADY_DETERMINISTIC:
            return f"no flag is needed {total}"
        case BisectOutcome.NOT_FIXED:
            return f"no set of flags tried makes it deterministic {total}"
        case BisectOutcome.INCONCLUSIVE if audit.differed_in is not None:
            return f"all runs match without flags, but in {audit.differed_in} runs of the same command differed {total}"
        case BisectOutcome.INCONCLUSIVE if audit.best_so_far is not None:
            flags = ", ".join(audit.best_so_far) or "no flags"
            return f"with {flags}, all runs so far match{_how_far(audit, audit.best_so_far)} {total}"
        case BisectOutcome.INCONCLUSIVE:
            return f"no answer {total}"


def _how_far(audit: Bisection, flags: tuple[str, ...]) -> str:
    """Return how far the matching runs with these flags went, ``""`` if all went to their ends."""
    group = next((group for group in audit.groups if set(group.recipe.flags) == set(flags)), None)
    matching = trials.match(group) if group is not None else ""
    return matching.removeprefix("yes") if matching.startswith("yes") else ""


def _evidence(audit: Bisection) -> str:
    if audit.evidence is None:
        return ""
    flags = {0: "without flags", 1: "with this flag"}.get(len(audit.needed or ()), "with these flags")
    parts = (bit_identical(audit.evidence, flags), may_go_unnoticed(audit.evidence), begins_later(audit.evidence))
    return f"evidence: {'; '.join(filter(None, parts))}"


def needed_lines(found: NeededFlag) -> Iterator[str]:
    """Yield what is known of a needed flag."""
    if found.left_out is not None:
        a, b = found.left_out.runs
        left_out = found.left_out
        trial = trials.name(left_out.trial)
        place = differences.where(left_out.step, left_out.stage, left_out.site)
        yield f"without it: runs {a} and {b} of trial {trial} differ {place}"
    else:
        yield "without it: the training fails, so whether it is needed is unproven"
    cost = costs.sentence(found)
    if cost:
        yield cost
    if found.requires:
        yield f"requires: {', '.join(found.requires)}"
    yield from by_hand.lines(found)
    for line in found.acts_on:
        yield from _acts_on(line)
    yield from map(_alternative, found.alternatives)


def _acts_on(found: LineToFix) -> Iterator[str]:
    """Yield a line that a flag acts on, and what does the same there."""
    yield f"acts on {sources.with_place(found.source)}"
    edit = found.edit
    if edit is not None and (len(edit.old), len(edit.new), edit.needs) == (1, 1, ()):
        yield f"by hand, {edit.file}:{edit.line}: {edit.new[0].strip()}"
    elif edit is not None:
        yield f"by hand, {edit.file}:{edit.line}:"
        yield from by_hand.edited(edit)
    elif found.repeated:
        yield f"  {sources.REPEATED}"


def _alternative(found: Alternative) -> str:
    if not found.matching:
        return f"alternative, not tried: {found.flag} (use --alternatives)"
    sentence = costs.sentence(found)
    cost = f", {sentence}" if sentence else ""
    through = f" through step {found.through:,}" if found.through is not None else ""
    match = f"{count(found.matching, 'run')} {'matches' if found.matching == 1 else 'match'}{through}"
    return f"alternative: {found.flag} ({match}){cost}"


def _notes(audit: Bisection) -> Iterator[str]:
    yield from trials.ended(audit)
    if audit.not_needed:
        yield f"not needed: {', '.join(audit.not_needed)}"
    yield from map(_failing, audit.failing_flags)
    if audit.outcome is BisectOutcome.NOT_FIXED:
        tried = sorted({flag for group in audit.groups for flag in group.recipe.flags})
        yield f"tried: {', '.join(tried) or 'nothing'}"
    if audit.not_applicable:
        number = len(audit.not_applicable)
        reasons = Counter(map(applicability.inapplicable, audit.not_applicable.values())).most_common()
        counted = ", ".join(f"{reason} ({times:,})" for reason, times in reasons)
        verb = "does" if number == 1 else "do"
        yield f"skipped {count(number, 'flag')} that {verb} not apply: {counted} (listed in audit.json)"


def _failing(found: FailingFlag) -> str:
    return f"the training fails with {found.flag}: {found.message or problems.errors(found.errors)}"


def last_unfixed(audit: Bisection) -> Group | None:
    """Return the trial with the most flags whose runs differ, None if a set of flags fixes it."""
    differing = [group for group in audit.groups if group.first_difference is not None]
    if audit.outcome is not BisectOutcome.NOT_FIXED or not differing:
        return None
    return max(differing, key=lambda group: len(group.recipe.flags))
