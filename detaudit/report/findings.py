"""One list of findings from any report, for the formats of CI systems."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from detaudit.compat import StrEnum
from detaudit.model import (
    Across,
    Audit,
    Bisection,
    Check,
    CheckedAudit,
    Comparison,
    ComparisonVerdict,
    Gate,
    GateName,
    GateStatus,
    Group,
    Report,
    Source,
    Trace,
    VariationBisection,
    Verdict,
)
from detaudit.model.check import RunsMustMatch
from detaudit.report import bisection, checks, comparison, traced, variations, words
from detaudit.report.messages import culprits, gates, problems, sources
from detaudit.report.places import in_repository, script_in, script_of
from detaudit.report.plain import line, plain
from detaudit.report.trials import Result


class Outcome(StrEnum):
    """The result of a rule; ``WARNED`` if it is broken, but the policy of the audit allows it."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    WARNED = "warned"


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's code, and what it does; the file is relative to the root of the repository."""

    file: str
    line: int
    message: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A rule (see rules.py) that a training keeps or breaks.

    ``suite`` is the audit; ``message`` is one line, ``detail`` what else is known. ``seconds`` is how long its runs
    took. ``compared`` is false of a gate that could not compare, which found nothing wrong. ``culprit`` is the line of
    the user's code that may be why, None if none is known; ``script`` is the audited file, relative to the root of the
    repository.
    """

    rule: str
    suite: str
    name: str
    status: Outcome
    message: str
    detail: str = ""
    seconds: float | None = None
    culprit: Location | None = None
    script: str | None = None
    compared: bool = True

    @property
    def place(self) -> tuple[str, int] | None:
        """The culprit's file and line, else the first line of the script, for formats that ask for a place."""
        if self.culprit is not None and self.culprit.file:  # a name may be blank
            return self.culprit.file, self.culprit.line
        return (self.script, 1) if self.script else None

    @property
    def fingerprint(self) -> str:
        """32 hex digits that stay the same as long as this is the same finding, even if its line moves."""
        parts = (self.rule, self.suite, self.name, self.culprit.file if self.culprit else "")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


_GATES = {
    GateName.REPEATABLE: "repeatable",
    GateName.BASELINE: "same-as-baseline",
    GateName.RESUME: "same-after-resume",
}
_OUTCOMES = {
    Verdict.DETERMINISTIC: Outcome.PASSED,
    Verdict.NONDETERMINISTIC: Outcome.FAILED,
    Verdict.MACHINE_DEPENDENT: Outcome.FAILED,
    Verdict.INCONCLUSIVE: Outcome.INCONCLUSIVE,
}


def findings(report: Report) -> tuple[Finding, ...]:
    """Return the findings of a report: one for each recipe of an audit or gate of a check, one for other reports.

    All text in them is plain; see plain.py.
    """
    found = tuple(_findings(report))
    interrupted = not isinstance(report, Comparison) and report.interrupted
    if interrupted and not any(one.status is Outcome.INCONCLUSIVE for one in found):
        message = "interrupted: not everything was checked"
        suite = found[0].suite if found else _suite(report.command)
        rule = "complete"
        found += (Finding(rule=rule, suite=suite, name=rule, status=Outcome.INCONCLUSIVE, message=message),)
    return tuple(_plain(one) for one in found)


def _plain(found: Finding) -> Finding:
    culprit = found.culprit
    if culprit is not None:
        file, message = line(in_repository(culprit.file)), line(culprit.message)
        culprit = msgspec.structs.replace(culprit, file=file, message=message)
    return msgspec.structs.replace(
        found,
        suite=line(found.suite),
        name=line(found.name),
        message=line(found.message),
        detail=plain(found.detail),
        culprit=culprit,
        script=line(in_repository(found.script)) if found.script else None,
    )


def _findings(report: Report) -> Iterator[Finding]:
    match report:
        case Bisection():
            yield _bisection(report, bisection.result(report), "fixable", "flags")
        case VariationBisection():
            yield _bisection(report, variations.result(report), "robust", "variations")
        case Trace():
            yield _trace(report)
        case Audit():
            yield from (_group(report, group) for group in report.groups)
        case Check():
            yield from (_gate(checked, gate) for checked in report.audits for gate in checked.gates)
        case Comparison():
            yield _comparison(report)


def _suite(command: Sequence[str]) -> str:
    script = script_of(command)
    return in_repository(script) if script else "detaudit"


def _location(source: Source | None) -> Location | None:
    return Location(file=source.file, line=source.line, message=sources.sentence(source)) if source else None


def _culprit(group: Group | None) -> Location | None:
    """Return the first line that may be why the runs of a group differ."""
    if group is None or group.verdict is not Verdict.NONDETERMINISTIC:
        return None
    return _location(next(iter(group.sources), None))


def _of_audit(
    audit: Audit, rule: str, name: str, message: str, detail: Iterable[str], culprit: Location | None
) -> Finding:
    return Finding(
        rule=rule,
        suite=_suite(audit.command),
        name=name,
        status=_outcome(audit),
        message=message,
        detail=_joined(detail),
        seconds=_seconds(audit.groups),
        culprit=culprit,
        script=script_of(audit.command),
    )


def _group(audit: Audit, group: Group) -> Finding:
    alone = msgspec.structs.replace(audit, verdict=group.verdict, groups=(group,))
    through = words.verdict(group).removeprefix(group.verdict).strip()
    message = (f"{through}: " if through else "") + "; ".join(filter(None, [words.sentence(group), words.where(group)]))
    return _of_audit(alone, "repeatable", group.recipe.name, message, words.details(group), _culprit(group))


def _outcome(audit: Audit) -> Outcome:
    dependent = audit.verdict is Verdict.MACHINE_DEPENDENT and audit.across is Across.WARN
    return Outcome.WARNED if dependent else _OUTCOMES[audit.verdict]


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _seconds(groups: Iterable[Group]) -> float:
    return sum(run.wall_s for group in groups for run in group.runs)


def _bisection(audit: Bisection | VariationBisection, found: Result, rule: str, name: str) -> Finding:
    differing, failed = found.differing, found.failed
    around = [words.where(differing), *words.source_lines(differing.sources)] if differing else []
    failure = [problems.reason(failed.reason)] if failed is not None and failed.reason is not None else []
    stderr = words.stderr_lines(failed) if failed is not None else []
    details = [text for heading, lines in found.details for text in (heading, *lines)]
    detail = [found.evidence, *failure, *stderr, *around, *details, *found.notes]
    return _of_audit(audit, rule, name, found.sentence, detail, _location(found.source))


def _trace(audit: Trace) -> Finding:
    answer, found, culprit = traced.answer(audit), audit.culprit, None
    if found is not None and found.file and found.line:
        code = f"{found.code}: " if found.code else ""
        culprit = Location(file=found.file, line=found.line, message=f"{code}{culprits.sentence(found)}")
    detail = [*traced.lines(audit), *traced.notes(audit)]
    message = f"{answer.word}: {answer.sentence}"
    return _of_audit(audit, "no-divergence", "trace", message, detail, culprit)


def _gate(checked: CheckedAudit, gate: Gate) -> Finding:
    groups = checked.audit.groups
    own = groups if gate.name is GateName.REPEATABLE else ()
    sure = checks.surety(checked, gate)
    details = [text for group in own for text in words.details(group) if text not in sure]
    return Finding(
        rule=_GATES[gate.name],
        suite=checked.name,
        name=gate.name,
        status=_status(gate),
        message="; ".join([gates.sentence(gate.detail), *sure]),
        detail=_joined([*details, *words.changes(gate.environment_changes)]),
        seconds=_seconds(own) if own else None,
        culprit=_culprit(next(iter(own), None)),
        script=script_of(checked.audit.command),
        compared=gate.status is not GateStatus.INCOMPARABLE and not isinstance(gate.detail, RunsMustMatch),
    )


def _status(gate: Gate) -> Outcome:
    if gate.status is GateStatus.PASSED:
        return Outcome.PASSED
    if not gate.blocking:
        return Outcome.WARNED
    return Outcome.INCONCLUSIVE if gate.status is GateStatus.INCONCLUSIVE else Outcome.FAILED


_COMPARED = {
    ComparisonVerdict.IDENTICAL: Outcome.PASSED,
    ComparisonVerdict.DIFFERENT: Outcome.FAILED,
    ComparisonVerdict.INCONCLUSIVE: Outcome.INCONCLUSIVE,
}


def _comparison(report: Comparison) -> Finding:
    lines = (comparison.explanation(report), comparison.losses_line(report), comparison.weights_line(report))
    return Finding(
        rule="identical",
        suite="compare",
        name=f"{report.a.name} and {report.b.name}",
        status=_COMPARED[report.verdict],
        message=comparison.sentence(report),
        detail=_joined([*lines, comparison.stages_line(report), *comparison.environment_lines(report)]),
        script=script_in(report.b.command),
    )
