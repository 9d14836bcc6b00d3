"""A report as a table for a terminal."""

from collections.abc import Sequence

import click
from tabulate import tabulate

from detaudit.model import (
    Audit,
    Bisection,
    Check,
    CheckVerdict,
    Comparison,
    Group,
    Likeness,
    Report,
    Trace,
    VariationBisection,
    Verdict,
)
from detaudit.report import bisection, checks, comparison, probes, traced, variations, words

_CHECKED = {CheckVerdict.PASSED: "green", CheckVerdict.FAILED: "red", CheckVerdict.INCONCLUSIVE: "yellow"}
_COLOURS = {Verdict.DETERMINISTIC: "green", Verdict.NONDETERMINISTIC: "red", Verdict.INCONCLUSIVE: "yellow"}
_LIKENESS = {Likeness.SAME: "green", Likeness.DIFFERENT: "red"}


def render(report: Report) -> str:
    """See Reporter.render."""
    parts = _parts(report)
    if report.warnings:
        parts.append("\n".join(f"{click.style('warning:', fg='yellow')} {text}" for text in report.warnings))
    if isinstance(report, Audit | Check) and report.interrupted:
        parts.append(click.style("interrupted", fg="yellow", bold=True) + ": what had finished is above")
    if report.next_steps:
        parts.append("\n".join(["next:", *(f"  # {step.why}\n  {step.command}" for step in report.next_steps)]))
    return "\n\n".join(parts) + "\n"


def _parts(report: Report) -> list[str]:
    match report:
        case Bisection():
            return [_bisection(report)]
        case VariationBisection():
            return [_variations(report)]
        case Trace():
            return [*(_group(group) for group in report.groups if group.runs), _trace(report)]
        case Audit():
            return [_group(group) for group in report.groups]
        case Check():
            return [_check(report)]
        case Comparison():
            return _comparison(report)


def _group(group: Group) -> str:
    headers, rows = words.table(group)
    align = ["left" if header in words.LEFT else "right" for header in headers]
    lines = [click.style(words.heading(group), bold=True)]
    if rows:
        lines.append(tabulate(rows, headers, tablefmt="simple", colalign=align, disable_numparse=True))
    verdict = click.style(group.verdict, fg=_COLOURS[group.verdict], bold=True)
    lines.append(f"{verdict}: {words.sentence(group)}")
    lines += filter(None, [words.where(group), probes.sentence(group)])
    lines += [f"  {line}" for line in words.sources_lines(group)]
    foot = (words.flags_line(group), words.varied_line(group), words.stages_line(group), words.replicas_line(group))
    lines += [click.style(line, dim=True) for line in foot if line]
    return "\n".join(lines + _failures(group))


def _bisection(audit: Bisection) -> str:
    lines = [
        tabulate(bisection.rows(audit), bisection.HEADERS, "simple", colalign=bisection.ALIGN, disable_numparse=True)
    ]
    verdict = click.style(audit.outcome, fg=_COLOURS[audit.verdict], bold=True)
    lines += ["", f"{verdict}: {bisection.sentence(audit)}", *filter(None, [bisection.evidence(audit)])]
    lines += [*bisection.trouble(audit), *bisection.where(audit)]
    for told in audit.needed or ():
        first, *rest = bisection.needed_lines(told)
        lines += ["", click.style(first, bold=True), *(f"  {line}" for line in rest)]
    foot = bisection.foot(audit)
    if foot:
        lines += ["", *(click.style(line, dim=True) for line in foot)]
    return "\n".join(lines)


def _variations(audit: VariationBisection) -> str:
    rows = variations.rows(audit)
    lines = [
        tabulate(rows, variations.HEADERS, "simple", colalign=variations.ALIGN if rows else (), disable_numparse=True)
    ]
    answer = click.style(audit.answer, fg=_COLOURS[audit.verdict], bold=True)
    lines += ["", f"{answer}: {variations.sentence(audit)}", *filter(None, [variations.evidence(audit)])]
    lines += [*variations.where(audit), *(f"  | {line}" for line in variations.last_words(audit))]
    for told in audit.matters or ():
        first, *rest = variations.matters_lines(told)
        lines += ["", click.style(first, bold=True), *(f"  {line}" for line in rest)]
    return "\n".join([*lines, "", *(click.style(line, dim=True) for line in variations.foot(audit))])


def _trace(trace: Trace) -> str:
    heading = click.style("traced", fg=_COLOURS[trace.verdict], bold=True)
    lines = [f"{heading}: {traced.sentence(trace)}", *(f"  {line}" for line in traced.lines(trace))]
    return "\n".join([*lines, *(click.style(line, dim=True) for line in traced.foot(trace))])


def _check(check: Check) -> str:
    lines = [tabulate(checks.rows(check), checks.HEADERS, "simple", colalign=checks.ALIGN, disable_numparse=True)]
    verdict = click.style(check.verdict, fg=_CHECKED[check.verdict], bold=True)
    lines += ["", f"{verdict}: {checks.sentence(check)}"]
    for heading, told in checks.told(check):
        lines += ["", click.style(heading, bold=True), *(f"  {line}" for line in told)]
    return "\n".join([*lines, *(["", *checks.updated(check)] if check.updated else [])])


def _comparison(found: Comparison) -> list[str]:
    lines = [click.style(line, bold=True) for line in comparison.heading(found)]
    parts = ["\n".join([*lines, _table(*comparison.sides(found))])]
    rows = comparison.curve(found)
    parts += [_table(comparison.CURVE, rows)] if rows else []
    verdict = click.style(found.verdict, fg=_LIKENESS[found.verdict], bold=True)
    lines = [f"{verdict}: {comparison.sentence(found)}"]
    lines += filter(None, [f"  {found.cause}" if found.cause else "", comparison.losses_line(found)])
    lines.append(click.style(comparison.stages_line(found), dim=True))
    parts.append("\n".join(lines))
    changes = comparison.environment_lines(found)
    parts += ["\n".join(["environments differ:", *(f"  {line}" for line in changes)])] if changes else []
    unlike = comparison.weights_line(found)
    return [*parts, f"{unlike}\n{_table(*comparison.weights(found))}"] if unlike else parts


def _table(headers: Sequence[str], rows: list[list[str]]) -> str:
    align = ["left" if header in comparison.LEFT else "right" for header in headers]
    return tabulate(rows, headers, tablefmt="simple", colalign=align, disable_numparse=True)


def _failures(group: Group) -> list[str]:
    run = words.first_failure(group)
    if run is None:
        return []
    return words.last_words(run)
