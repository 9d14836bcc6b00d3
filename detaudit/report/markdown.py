"""A report as Markdown, for a pull request or a lab book."""

from collections.abc import Sequence

from tabulate import tabulate

from detaudit.model import Audit, Bisection, Check, Comparison, Group, Report, Trace, VariationBisection
from detaudit.report import bisection, checks, comparison, probes, traced, variations, words


def render(report: Report) -> str:
    """See Reporter.render."""
    command = f"`{' '.join(report.command)}`" if report.command else ""
    parts = [f"## detaudit: {report.verdict}", command, *_parts(report)]
    parts += [f"> **Warning:** {text}" for text in report.warnings]
    if isinstance(report, Audit | Check) and report.interrupted:
        parts.append("Interrupted: what had finished is above.")
    if report.next_steps:
        steps = [line for step in report.next_steps for line in (f"# {step.why}", step.command)]
        parts.append("\n".join(["Next:", "", "```sh", *steps, "```"]))
    return "\n\n".join(filter(None, parts)) + "\n"


def _parts(report: Report) -> list[str]:
    match report:
        case Bisection():
            return _bisection(report)
        case VariationBisection():
            return _variations(report)
        case Trace():
            return [*(_group(group) for group in report.groups if group.runs), *_trace(report)]
        case Audit():
            return [_group(group) for group in report.groups]
        case Check():
            return _check(report)
        case Comparison():
            return _comparison(report)


def _bisection(audit: Bisection) -> list[str]:
    parts = [
        tabulate(bisection.rows(audit), bisection.HEADERS, "pipe", colalign=bisection.ALIGN, disable_numparse=True),
        f"**{audit.outcome}**: {bisection.sentence(audit)}",
        bisection.evidence(audit),
        "\n".join([*bisection.trouble(audit), *bisection.where(audit)]),
    ]
    for told in audit.needed or ():
        first, *rest = bisection.needed_lines(told)
        parts.append("\n".join([f"### {first}", "", *(f"- {line}" for line in rest)]))
    return [*parts, "\n".join(f"- {line}" for line in bisection.foot(audit))]


def _variations(audit: VariationBisection) -> list[str]:
    rows = variations.rows(audit)
    last_words = variations.last_words(audit)
    parts = [
        tabulate(rows, variations.HEADERS, "pipe", colalign=variations.ALIGN if rows else (), disable_numparse=True),
        f"**{audit.answer}**: {variations.sentence(audit)}",
        variations.evidence(audit),
        "\n".join(variations.where(audit)),
        "\n".join(["```", *last_words, "```"]) if last_words else "",
    ]
    for told in audit.matters or ():
        first, *rest = variations.matters_lines(told)
        parts.append("\n".join([f"### {first}", "", *(f"- {line}" for line in rest)]))
    return [*parts, "\n".join(f"- {line}" for line in variations.foot(audit))]


def _trace(trace: Trace) -> list[str]:
    lines = "\n".join(["```", *told, "```"]) if (told := list(traced.lines(trace))) else ""
    return [f"**traced**: {traced.sentence(trace)}", lines, "\n".join(f"- {line}" for line in traced.foot(trace))]


def _check(check: Check) -> list[str]:
    parts = [
        tabulate(checks.rows(check), checks.HEADERS, "pipe", colalign=checks.ALIGN, disable_numparse=True),
        f"**{check.verdict}**: {checks.sentence(check)}",
    ]
    for heading, told in checks.told(check):
        parts.append("\n".join([f"### {heading}", "", *(f"- {line}" for line in told)]))
    return [*parts, "\n".join(["```", *checks.updated(check), "```"]) if check.updated else ""]


def _comparison(found: Comparison) -> list[str]:
    rows, changes, unlike = comparison.curve(found), comparison.environment_lines(found), comparison.weights_line(found)
    return [
        "\n".join(f"- {line}" for line in comparison.heading(found)),
        _table(*comparison.sides(found)),
        _table(comparison.CURVE, rows) if rows else "",
        f"**{found.verdict}**: {comparison.sentence(found)}",
        found.cause or "",
        comparison.losses_line(found).capitalize(),
        comparison.stages_line(found).capitalize(),
        "\n".join(["Environments differ:", "", *(f"- {line}" for line in changes)]) if changes else "",
        unlike.capitalize(),
        _table(*comparison.weights(found)) if unlike else "",
    ]


def _table(headers: Sequence[str], rows: list[list[str]]) -> str:
    align = ["left" if header in comparison.LEFT else "right" for header in headers]
    return tabulate(rows, headers, tablefmt="pipe", colalign=align, disable_numparse=True)


def _group(group: Group) -> str:
    headers, rows = words.table(group)
    align = ["left" if header in words.LEFT else "right" for header in headers]
    parts = [
        f"### {words.heading(group)}",
        tabulate(rows, headers, tablefmt="pipe", colalign=align, disable_numparse=True) if rows else "",
        f"**{group.verdict}**: {words.sentence(group)}",
        words.where(group),
        probes.sentence(group),
        "\n".join(f"- `{line}`" for line in words.sources_lines(group)),
        f"Flags {words.flags_line(group)}" if group.flags else "",
        words.varied_line(group).capitalize(),
        f"Stages {words.stages_line(group)}" if group.stages else "",
        words.replicas_line(group).capitalize(),
    ]
    failed = words.first_failure(group)
    if failed is not None:
        parts.append("\n".join([f"The end of run {failed.id}'s stderr:", "", "```", *failed.stderr_tail, "```"]))
    return "\n\n".join(filter(None, parts))
