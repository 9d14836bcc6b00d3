"""What every report for people shows, and in which order; how it looks is for each format to decide."""

from detaudit.compat import assert_never
from detaudit.errors import ExitCode
from detaudit.model import (
    SAYS,
    VERDICTS,
    AnyVerdict,
    Audit,
    Bisection,
    Check,
    Comparison,
    Fix,
    Group,
    Report,
    Resumption,
    Trace,
    VariationBisection,
)
from detaudit.report import checks, fixes, groups, resumes, searches, traces
from detaudit.report.document import (
    Answer,
    Code,
    Heading,
    Interrupted,
    Items,
    Mood,
    NextSteps,
    Notes,
    Section,
    Text,
    Warnings,
    plain,
    section,
)
from detaudit.report.searches import Result

_MOODS = {
    ExitCode.DETERMINISTIC: Mood.GOOD,
    ExitCode.NONDETERMINISTIC: Mood.BAD,
    ExitCode.INCONCLUSIVE: Mood.UNCLEAR,
}


def mood(verdict: AnyVerdict) -> Mood:
    """Return whether a verdict is good."""
    return _MOODS[VERDICTS[SAYS[verdict]].exit_code]


def sections(report: Report) -> list[Section]:
    """Return the sections of a report, none of them empty, with plain text."""
    steps = [(step.comment(), step.command) for step in report.next_steps]
    candidates = [
        *_sections(report),
        section(Warnings([one.sentence() for one in report.warnings])),
        section(Interrupted("the report covers what had finished") if report.interrupted else None),
        section(NextSteps(steps)),
    ]
    return [[plain(block) for block in one] for one in candidates if one]


def _sections(report: Report) -> list[Section]:
    match report:
        case Bisection():
            return _bisection(searches.bisection_result(report), mood(report.verdict))
        case VariationBisection():
            return _bisection(searches.variations_result(report), mood(report.verdict))
        case Trace():
            return [*(_group(group) for group in report.groups if group.runs), _trace(report)]
        case Fix():
            return [*(_group(group) for group in report.groups if group.runs), *_fix(report)]
        case Resumption():
            return [*(_group(group) for group in report.groups if group.runs), *_resumption(report)]
        case Audit():
            return [_group(group) for group in report.groups]
        case Check():
            return _check(report)
        case Comparison():
            return _comparison(report)
        case _:
            assert_never(report)


def _group(group: Group) -> Section:
    return section(
        Heading(groups.recipe_summary(group.recipe)),
        groups.runs_table(group),
        Answer(groups.verdict(group), mood(group.verdict), groups.verdict_sentence(group), groups.evidence_line(group)),
        Text([line for line in (groups.where(group), groups.probe_sentence(group)) if line]),
        Items(groups.source_lines(group.sources), code=True),
        *groups.blocks(group),
        Notes(groups.notes(group)),
        groups.stderr(group),
    )


def _bisection(result: Result, mood: Mood) -> list[Section]:
    differing, failed = result.differing, result.failed
    reason = failed.reason.text() if failed is not None and failed.reason is not None else ""
    answer = section(
        Answer(result.outcome, mood, result.sentence),
        Text([line for line in (result.evidence, reason, groups.where(differing) if differing else "") if line]),
        Items(groups.source_lines(differing.sources) if differing else [], code=True),
        groups.stderr(failed) if failed else None,
    )
    details = [section(Heading(heading), Items(lines)) for heading, lines in result.details]
    return [section(result.table), answer, *details, section(Notes(result.notes))]


def _trace(trace: Trace) -> Section:
    answer = traces.answer(trace)
    return section(
        Answer(answer.word, mood(trace.verdict), answer.sentence),
        Code(list(traces.lines(trace))),
        Notes(traces.notes(trace)),
    )


def _fix(fix: Fix) -> list[Section]:
    answer = fixes.answer(fix)
    return [
        section(
            Answer(answer.word, mood(fix.verdict), answer.sentence),
            Items(list(fixes.evidence(fix)), code=True),
            Text(list(fixes.remains(fix))),
        ),
        section(Code(fix.diff.splitlines(), diff=True)),
        section(Notes(fixes.notes(fix))),
    ]


def _resumption(resumption: Resumption) -> list[Section]:
    answer, (change, diff) = resumes.answer(resumption), resumes.restored(resumption)
    return [
        section(resumes.table(resumption)),
        section(
            Answer(answer.word, mood(resumption.verdict), answer.sentence),
            Items(list(resumes.lines(resumption))),
        ),
        section(Text(change), Code(diff, diff=True)),
        section(Notes(resumes.notes(resumption))),
    ]


def _check(check: Check) -> list[Section]:
    changes = checks.lock_lines(check)
    return [
        section(checks.table(check)),
        section(Answer(check.verdict, mood(check.verdict), checks.sentence(check))),
        *(section(*blocks) for blocks in checks.gate_details(check)),
        section(Text([f"updated {check.lock_file}:"] if changes else []), Code(changes)),
    ]


def _comparison(comparison: Comparison) -> list[Section]:
    changes, tensors = checks.environment_lines(comparison), checks.weights_line(comparison)
    first = f"; first {checks.MOST_WEIGHTS}" if len(comparison.differing_weights) > checks.MOST_WEIGHTS else ""
    files = checks.outputs_lines(comparison)
    explained = (checks.explanation(comparison), checks.losses_line(comparison))
    return [
        section(Text(checks.heading(comparison)), checks.recordings(comparison)),
        section(checks.losses(comparison)),
        section(
            Answer(comparison.verdict, mood(comparison.verdict), checks.comparison_sentence(comparison)),
            Text([line for line in explained if line]),
            Text([comparison.parting.text()] if comparison.parting is not None else []),
            Items(comparison.parting.places() if comparison.parting is not None else (), code=True),
            Items([*checks.repeats(comparison), *filter(None, [checks.code_line(comparison)])]),
            Notes([checks.stages_line(comparison)] if checks.was_compared(comparison) else []),
            *filter(None, map(groups.stderr, comparison.groups)),
        ),
        section(Text(["files and printed text that differ:"] if files else []), Items(files)),
        section(Text(["environments differ:"] if changes else []), Items(changes)),
        section(Text([f"{tensors}{first}:"] if tensors else []), checks.weights(comparison)),
    ]
