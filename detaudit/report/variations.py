"""What reports say about a bisection over variations: its trials, and the variations that change the training."""

from collections.abc import Iterator

from detaudit.model import EffectExample, Group, VariationBisection, VariationEffect, VaryOutcome
from detaudit.model.number import count
from detaudit.report import trials, words
from detaudit.report.blocks import Table
from detaudit.report.messages import applicability, differences, explanations, problems, sources
from detaudit.report.messages.evidence import may_go_unnoticed

HEADERS = (*trials.HEADERS, "MATCHES CONTROL", "VARIED")
MOST_NAMES = 3
NOTE = (
    "Note: runs here have different environments. In every trial but the first, the listed variations change from run "
    "to run, and run 1 is the control."
)


def result(audit: VariationBisection) -> trials.Result:
    """Return a bisection over variations in words."""
    control = next(iter(audit.groups), None)
    suspects = [source for one in audit.sensitive_to or () for source in one.suspects]
    return trials.Result(
        table=Table(HEADERS, [_row(group, tuple(audit.controls)) for group in audit.groups]),
        outcome=audit.outcome,
        sentence=_sentence(audit),
        evidence=_evidence(audit),
        differing=control if audit.outcome is VaryOutcome.CONTROL_DIFFERS else None,
        failed=control if audit.outcome is VaryOutcome.INCONCLUSIVE and not audit.interrupted else None,
        details=[(f"{one.variation}: {one.title}", list(_effect_lines(one))) for one in audit.sensitive_to or ()],
        notes=list(_notes(audit)),
        source=next(iter(suspects), None),
    )


def _row(group: Group, requested: tuple[str, ...]) -> list[str]:
    """Return the row of a trial; its numbers are those of its last run."""
    own = group.runs[1:] if group.varied else group.runs
    last = next((run for run in reversed(own) if run.ranks), None)
    varied = _varied([one.id for one in group.varied], requested)
    return [*trials.cells(group, len(own), last), trials.match(group), varied]


def _varied(names: list[str], requested: tuple[str, ...]) -> str:
    if not names:
        return "(control)"
    rest = [name for name in requested if name not in names]
    if len(names) > MOST_NAMES:
        return f"all except {', '.join(rest)}" if rest else f"all {len(names)}"
    return ", ".join(names)


def _sentence(audit: VariationBisection) -> str:
    total = trials.total(audit)
    match audit.outcome:
        case VaryOutcome.SENSITIVE:
            found = [one.variation for one in audit.sensitive_to or ()]
            verb = "changes" if len(found) == 1 else "change"
            return f"{count(len(found), 'variation')} {verb} the training: {', '.join(found)} {total}"
        case VaryOutcome.ROBUST:
            return f"no variation changes the training {total}"
        case VaryOutcome.CONTROL_DIFFERS:
            return (
                "the runs differ even at fixed control values, so the training itself is nondeterministic; "
                f"fix that first {total}"
            )
        case VaryOutcome.INCONCLUSIVE:
            return f"no answer {total}"


def _evidence(audit: VariationBisection) -> str:
    found = audit.evidence
    if found is None:
        return ""
    if not audit.no_effect:
        return f"evidence: {count(found.runs, 'run')} at control values are bit-identical"
    runs = found.runs - 1  # without the control's
    active = "all other variations active" if audit.sensitive_to else "all variations active"
    match = "matches" if runs == 1 else "match"
    return f"evidence: {count(runs, 'run')} with {active} {match} the control bit for bit; {may_go_unnoticed(found)}"


def _effect_lines(found: VariationEffect) -> Iterator[str]:
    yield _example(found.example)
    if found.together_with:
        yield f"shows only together with: {', '.join(found.together_with)}"
    yield from map(sources.with_place, found.suspects[: words.MOST_SOURCES])
    if found.expected:
        yield "expected: this variation may change results without a bug in the script"
    if found.fix:
        yield f"fix: {found.fix}"
    for flag, line in zip(found.flags, found.by_hand, strict=False):
        yield f"pin it with --flag {flag}" + (f", or by hand: {line}" if line else "")


def _example(found: EffectExample) -> str:
    values = f" ({', '.join(found.values)})" if found.values else ""
    run = f"run {found.runs[1]} of trial {trials.name(found.trial)}{values}"
    if found.step is None or found.stage is None or found.errors:
        return f"{run} fails, but the control does not: {found.last_line or problems.errors(found.errors)}"
    why = f": {explanations.sentence(found.stage, found.explanation)}" if found.explanation else ""
    return f"{run} first differs from the control {differences.where(found.step, found.stage)}{why}"


def _notes(audit: VariationBisection) -> Iterator[str]:
    yield from trials.ended(audit)
    if audit.no_effect:
        yield f"no effect: {', '.join(audit.no_effect)}"
    yield from (f"not varied: {name} ({applicability.not_varied(reason)})" for name, reason in audit.not_varied.items())
    if audit.controls:
        yield f"control values: {'; '.join(f'{name} ({value})' for name, value in audit.controls.items())}"
    yield NOTE
