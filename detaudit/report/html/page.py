"""Which page shows a report."""

import shlex

import msgspec

from detaudit.compat import assert_never
from detaudit.model import Audit, Bisection, Check, Comparison, Fix, Report, Resumption, Trace, VariationBisection
from detaudit.model.figures import Figures
from detaudit.report import checks, fixes, groups, resumes
from detaudit.report import sections as layout
from detaudit.report.document import Answer, Code, Interrupted, Items, Mood, NextSteps, Notes, Text, Warnings, section
from detaudit.report.findings import script_of
from detaudit.report.html import bisect, check, compare, run, trace
from detaudit.report.html.figures import MOODS, Page, Part, blocks
from detaudit.report.sections import mood

NO_ANSWER = Answer("inconclusive", Mood.UNCLEAR, "no run finished")
"""Of an audit that was interrupted before its first run."""


def page(report: Report, figures: Figures) -> Page:
    """Return the page of a report."""
    sections = layout.sections(report)
    every = [block for section in sections for block in section]
    answers = [block for block in every if isinstance(block, Answer)] or [NO_ANSWER]
    answer = answers[-1]  # of a trace, its runs have one before it
    headline = groups.headline(answer.word, answer.sentence)
    if type(report) is Audit:
        headline = groups.of_groups(report.groups)
    kind = msgspec.to_builtins(report)["kind"]
    script = script_of(report.command) if report.command else None
    overview, why, parts = _parts(report, figures)
    return Page(
        kind=groups.kind(kind),
        title=f"{script or kind}: {headline}",
        headline=headline,
        mood=MOODS[mood(report.verdict)],
        facts=[f"{groups.kind(kind)} of {script}" if script else groups.kind(kind), *groups.facts(report)],
        lede=_lede(report),
        parts=parts,
        warnings=[line for block in every if isinstance(block, Warnings) for line in block.lines],
        interrupted=next((block.text for block in every if isinstance(block, Interrupted)), ""),
        next_steps=[step for block in every if isinstance(block, NextSteps) for step in block.steps],
        environment=_environment(report),
        command=shlex.join(report.command),
        overview=overview,
        why=why,
        links=check.links(report, parts) if isinstance(report, Check) else [(part.id, part.title) for part in parts],
    )


def _environment(report: Report) -> list[tuple[str, str]]:
    match report:
        case Comparison():
            return groups.environments(report)
        case Check():
            return groups.environment(report.audits[0].audit.environment) if report.audits else []
        case _:
            return groups.environment(report.environment)


def _lede(report: Report) -> list[str]:
    match report:
        case Bisection() | VariationBisection():
            return [bisect.result(report).evidence]
        case Comparison():
            explained = (checks.explanation(report), checks.losses_line(report), *checks.repeats(report))
            return [line for line in explained if line]
        case _:
            return groups.lede(report.groups) if type(report) is Audit else []


def _parts(report: Report, figures: Figures) -> tuple[Part | None, Part | None, list[Part]]:
    """Return the overview of a report, why it is so, and its other parts."""
    match report:
        case Fix():
            return None, None, [*_fix(report), *run.parts(report, figures)]
        case Resumption():
            return None, None, [*_resumption(report), *run.parts(report, figures)]
        case Trace():
            return None, trace.why(report), trace.parts(report, figures)
        case Bisection() | VariationBisection():
            return None, bisect.why(report), bisect.parts(report)
        case Check():
            return check.overview(report), check.why(report), check.parts(report, figures)
        case Comparison():
            return compare.overview(report), None, compare.parts(report, figures)
        case Audit():
            return run.overview(report, figures), run.why(report), run.parts(report, figures)
        case _:
            assert_never(report)


def _fix(fix: Fix) -> list[Part]:
    return [
        *blocks(
            "changes", "Changes", [section(Items(list(fixes.evidence(fix)))), section(Code(fix.diff.splitlines()))]
        ),
        *blocks("remains", "What remains", [section(Text(list(fixes.remains(fix))))]),
        *blocks("tried", "What was tried", [section(Notes(fixes.notes(fix)))]),
    ]


def _resumption(resumption: Resumption) -> list[Part]:
    change, diff = resumes.restored(resumption)
    return [
        *blocks("stops", "Stops", [section(resumes.table(resumption))]),
        *blocks("lost", "What was lost", [section(Items(list(resumes.lines(resumption))))]),
        *blocks("restored", "What restores it", [section(Text(change), Code(diff))]),
        *blocks("tried", "What was tried", [section(Notes(resumes.notes(resumption)))]),
    ]
