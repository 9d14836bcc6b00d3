"""What is said of bisections."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from detaudit.model import (
    Alternative,
    Bisection,
    BisectOutcome,
    EffectExample,
    FailingFlag,
    Group,
    LineToFix,
    NeededFlag,
    Run,
    Source,
    Status,
    VariationBisection,
    VariationEffect,
    VaryOutcome,
    digits,
)
from detaudit.model.evidence import begins_later, bit_identical, may_go_unnoticed
from detaudit.model.fact import count, shortened
from detaudit.model.problems import errors
from detaudit.model.sources import REPEATED
from detaudit.model.stage import STATUSES
from detaudit.notebooks.cells import place
from detaudit.report import groups, traces
from detaudit.report.document import DIGEST, FINAL_LOSS, FLAGS, RUNS, SUM_OF_WEIGHTS, Cell, Column, Mood, Table

# What both kinds of bisection report: a table of trials, an answer, and what it rests on.


_TRIAL = (Column("TRIAL", left=True), RUNS, SUM_OF_WEIGHTS, FINAL_LOSS, DIGEST)
_PREFIX = "trial-"


@dataclass(frozen=True)
class Result:
    """A bisection in words.

    ``differing`` is a trial whose difference the answer does not explain, ``failed`` an inconclusive one.
    ``details`` are paragraphs, each with a heading; ``source`` is the first line of the user's code that may be why.
    """

    table: Table
    outcome: str
    sentence: str
    evidence: str
    differing: Group | None
    failed: Group | None
    details: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str]
    source: Source | None


def name(group: str) -> str:
    """Return the number of a trial, by the name of its group."""
    return group.removeprefix(_PREFIX)


def trials_total(audit: Bisection | VariationBisection) -> str:
    """Return how many trials and runs there were."""
    return f"({count(len(audit.groups), 'trial')}, {count(audit.total_runs, 'run')})"


def cells(group: Group, runs: int, shown: Run | None) -> list[str]:
    """Return the columns of every trial, with the fingerprint of one of its runs."""
    rank = shown.ranks[0] if shown else None
    return [
        name(group.recipe.name),
        f"{runs:,}",
        digits(rank.sum_of_weights) if rank else "-",
        digits(rank.final_loss) if rank else "-",
        groups.short_digest(rank),
    ]


def ended(audit: Bisection | VariationBisection) -> Iterator[str]:
    """Yield where the runs were ended, if all were at one step (--until)."""
    steps = {run.through for group in audit.groups for run in group.runs if run.finished}
    through = steps.pop() if len(steps) == 1 else None
    if through is not None:
        yield f"every run was ended after step {through:,}: nothing is known of later steps"


def match(group: Group) -> Cell:
    """Return whether the runs of a trial match, and where they differ."""
    first = group.first_difference
    if first is not None:
        return Cell(f"no: {first.cell()}", Mood.BAD)
    bad = next((run for run in group.runs if not run.finished), None)
    if bad is not None:
        return Cell(f"({STATUSES[bad.status]})")
    return Cell(_trial_how_far(group.runs), Mood.GOOD) if len(group.runs) > 1 else Cell("-")


def _trial_how_far(runs: Sequence[Run]) -> str:
    """Return how far runs match that may have been ended: the second of them that went furthest."""
    ended = sorted(run.through for run in runs if run.through is not None)
    complete = len(runs) - len(ended)
    if complete > 1 or not ended:
        return f"yes, {complete:,} to the end" if ended else "yes"
    return f"yes, through step {ended[-1 if complete else -2]:,}"


# What reports say about a bisection: its trials, and the flags that are needed.


_BISECTION = (*_TRIAL, Column("RUNS MATCH", left=True, comfort=17), FLAGS)
MOST_FLAGS = 3


def bisection_result(audit: Bisection) -> Result:
    """Return a bisection in words."""
    explained = audit.interrupted or audit.differed_in is not None
    inconclusive = audit.outcome is BisectOutcome.INCONCLUSIVE and not explained
    differing = last_unfixed(audit)
    return Result(
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
    needed = frozenset(flag for one in audit.needed or () for flag in (one.flag, *one.requires))
    rows = [_row(group, needed) for group in audit.groups]
    return Table(_BISECTION, rows, "* the set found" if any(row[-1].startswith("* ") for row in rows) else "")


def _row(group: Group, needed: frozenset[str]) -> list[str]:
    furthest = next((run for run in group.runs if run.ranks and run.status is Status.OK), None)
    first = furthest or next((run for run in group.runs if run.ranks), None)
    flags = shortened(group.recipe.flags, most=MOST_FLAGS) or "(none)"
    star = "* " if needed and frozenset(group.recipe.flags) == needed else ""
    return [*cells(group, len(group.runs), first), match(group), star + flags]


def _sentence(audit: Bisection) -> str:
    total = trials_total(audit)
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
    matching = match(group) if group is not None else ""
    return matching.removeprefix("yes") if matching.startswith("yes") else ""


def _evidence(audit: Bisection) -> str:
    if audit.evidence is None:
        return ""
    flags = {0: "without flags", 1: "with this flag"}.get(len(audit.needed or ()), "with these flags")
    parts = (bit_identical(audit.evidence, flags), may_go_unnoticed(audit.evidence), begins_later(audit.evidence))
    return f"evidence: {'; '.join(filter(None, parts))}"


def needed_lines(flag: NeededFlag) -> Iterator[str]:
    """Yield what is known of a needed flag."""
    if flag.left_out is not None:
        a, b = flag.left_out.runs
        left_out = flag.left_out
        trial = name(left_out.trial)
        location = left_out.stage.where(left_out.step, left_out.site)
        yield f"without it: runs {a} and {b} of trial {trial} differ {location}"
    else:
        yield "without it: the training fails, so whether it is needed is unproven"
    cost = cost_sentence(flag)
    if cost:
        yield cost
    if flag.requires:
        yield f"requires: {', '.join(flag.requires)}"
    yield from traces.by_hand_lines(flag)
    for line in flag.acts_on:
        yield from _acts_on(line)
    yield from map(_alternative, flag.alternatives)


def _acts_on(fix: LineToFix) -> Iterator[str]:
    """Yield a line that a flag acts on, and what does the same there."""
    yield f"acts on {fix.source.with_place()}"
    edit = fix.edit
    if edit is not None and (len(edit.old), len(edit.new), edit.needs) == (1, 1, ()):
        yield f"by hand, {place(edit.file, edit.line)}: {edit.new[0].strip()}"
    elif edit is not None:
        yield f"by hand, {place(edit.file, edit.line)}:"
        yield from traces.edited_lines(edit)
    elif fix.repeated:
        yield f"  {REPEATED}"


def _alternative(alternative: Alternative) -> str:
    if not alternative.matching:
        return f"alternative, not tried: {alternative.flag} (use --alternatives)"
    sentence = cost_sentence(alternative)
    cost = f", {sentence}" if sentence else ""
    through = f" through step {alternative.through:,}" if alternative.through is not None else ""
    match = f"{count(alternative.matching, 'run')} {'matches' if alternative.matching == 1 else 'match'}{through}"
    return f"alternative: {alternative.flag} ({match}){cost}"


def _notes(audit: Bisection) -> Iterator[str]:
    yield from ended(audit)
    if audit.not_needed:
        yield f"not needed: {', '.join(audit.not_needed)}"
    yield from map(_failing, audit.failing_flags)
    if audit.outcome is BisectOutcome.NOT_FIXED:
        tried = sorted({flag for group in audit.groups for flag in group.recipe.flags})
        yield f"tried: {', '.join(tried) or 'nothing'}"
    if audit.not_applicable:
        number = len(audit.not_applicable)
        reasons = Counter(reason.text() for reason in audit.not_applicable.values()).most_common()
        counted = ", ".join(f"{reason} ({times:,})" for reason, times in reasons)
        verb = "does" if number == 1 else "do"
        yield f"skipped {count(number, 'flag')} that {verb} not apply: {counted} (listed in audit.json)"


def _failing(flag: FailingFlag) -> str:
    return f"the training fails with {flag.flag}: {flag.message or errors(flag.errors)}"


def last_unfixed(audit: Bisection) -> Group | None:
    """Return the trial with the most flags whose runs differ, None if a set of flags fixes it."""
    differing = [group for group in audit.groups if group.first_difference is not None]
    if audit.outcome is not BisectOutcome.NOT_FIXED or not differing:
        return None
    return max(differing, key=lambda group: len(group.recipe.flags))


# What reports say about a bisection over variations: its trials, and the variations that change the training.


_VARIATIONS = (
    *_TRIAL,
    Column("MATCHES CONTROL", left=True, comfort=17),
    Column("VARIED", left=True, comfort=16),
)
MOST_NAMES = 3
NOTE = (
    "Note: runs here have different environments. In every trial but the first, the listed variations change from run "
    "to run, and run 1 is the control."
)


def variations_result(audit: VariationBisection) -> Result:
    """Return a bisection over variations in words."""
    control = next(iter(audit.groups), None)
    suspects = [source for one in audit.sensitive_to or () for source in one.suspects]
    return Result(
        table=Table(_VARIATIONS, [_variation_row(group, tuple(audit.controls)) for group in audit.groups]),
        outcome=audit.outcome,
        sentence=_variation_sentence(audit),
        evidence=_variation_evidence(audit),
        differing=control if audit.outcome is VaryOutcome.CONTROL_DIFFERS else None,
        failed=control if audit.outcome is VaryOutcome.INCONCLUSIVE and not audit.interrupted else None,
        details=[(f"{one.variation}: {one.title}", list(_effect_lines(one))) for one in audit.sensitive_to or ()],
        notes=list(_variation_notes(audit)),
        source=next(iter(suspects), None),
    )


def _variation_row(group: Group, requested: tuple[str, ...]) -> list[str]:
    """Return the row of a trial; its numbers are those of its last run."""
    own = group.runs[1:] if group.varied else group.runs
    last = next((run for run in reversed(own) if run.ranks), None)
    varied = _varied([one.id for one in group.varied], requested)
    return [*cells(group, len(own), last), match(group), varied]


def _varied(names: list[str], requested: tuple[str, ...]) -> str:
    if not names:
        return "(control)"
    rest = [name for name in requested if name not in names]
    if len(names) > MOST_NAMES:
        return f"all except {', '.join(rest)}" if rest else f"all {len(names)}"
    return ", ".join(names)


def _variation_sentence(audit: VariationBisection) -> str:
    total = trials_total(audit)
    match audit.outcome:
        case VaryOutcome.SENSITIVE:
            variations = [one.variation for one in audit.sensitive_to or ()]
            verb = "changes" if len(variations) == 1 else "change"
            return f"{count(len(variations), 'variation')} {verb} the training: {', '.join(variations)} {total}"
        case VaryOutcome.ROBUST:
            return f"no variation changes the training {total}"
        case VaryOutcome.CONTROL_DIFFERS:
            return (
                "the runs differ even at fixed control values, so the training itself is nondeterministic; "
                f"fix that first {total}"
            )
        case VaryOutcome.INCONCLUSIVE:
            return f"no answer {total}"


def _variation_evidence(audit: VariationBisection) -> str:
    evidence = audit.evidence
    if evidence is None:
        return ""
    if not audit.no_effect:
        return f"evidence: {count(evidence.runs, 'run')} at control values are bit-identical"
    runs = evidence.runs - 1  # without the control's
    active = "all other variations active" if audit.sensitive_to else "all variations active"
    match = "matches" if runs == 1 else "match"
    return f"evidence: {count(runs, 'run')} with {active} {match} the control bit for bit; {may_go_unnoticed(evidence)}"


def _effect_lines(effect: VariationEffect) -> Iterator[str]:
    yield _example(effect.example)
    if effect.together_with:
        yield f"shows only together with: {', '.join(effect.together_with)}"
    yield from (source.with_place() for source in effect.suspects[: groups.MOST_SOURCES])
    if effect.expected:
        yield "expected: this variation may change results without a bug in the script"
    if effect.fix:
        yield f"fix: {effect.fix}"
    for flag, line in zip(effect.flags, effect.by_hand, strict=False):
        yield f"pin it with --flag {flag}" + (f", or by hand: {line}" if line else "")


def _example(example: EffectExample) -> str:
    values = f" ({', '.join(example.values)})" if example.values else ""
    run = f"run {example.runs[1]} of trial {name(example.trial)}{values}"
    if example.step is None or example.stage is None or example.errors:
        return f"{run} fails, but the control does not: {example.last_line or errors(example.errors)}"
    why = f": {example.explanation.text(example.stage)}" if example.explanation else ""
    return f"{run} first differs from the control {example.stage.where(example.step)}{why}"


def _variation_notes(audit: VariationBisection) -> Iterator[str]:
    yield from ended(audit)
    if audit.no_effect:
        yield f"no effect: {', '.join(audit.no_effect)}"
    yield from (f"not varied: {name} ({reason.text()})" for name, reason in audit.not_varied.items())
    if audit.controls:
        yield f"control values: {'; '.join(f'{name} ({value})' for name, value in audit.controls.items())}"
    yield NOTE


def cost_sentence(flag: NeededFlag | Alternative) -> str:
    """Return what a flag costs, ``""`` if too few runs with it and without it took turns to say."""
    if flag.cost is None or flag.cost_range is None or flag.cost_runs is None:
        return ""
    least, most = flag.cost_range
    pairs = count(flag.cost_runs[0], "pair of runs", "pairs of runs")
    if round(least, 2) <= 1 <= round(most, 2):
        return f"no measurable cost ({pairs}: {least:.2f}x to {most:.2f}x the time)"
    return f"cost: training takes {flag.cost:.2f}x as long with it ({pairs}: {least:.2f}x to {most:.2f}x)"
