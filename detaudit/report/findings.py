"""One list of findings from any report, which each format of a CI system tells in its own way."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from detaudit.model import (
    Audit,
    Bisection,
    Check,
    Checked,
    Comparison,
    Gate,
    GateName,
    GateStatus,
    Group,
    Likeness,
    Report,
    Source,
    Trace,
    VariationBisection,
    Verdict,
)
from detaudit.report import bisection, comparison, probes, traced, variations, words
from detaudit.report.places import in_repository, script_in, script_of
from detaudit.report.plain import line, plain


class Outcome(StrEnum):
    """What became of a question; ``WARNED`` where the answer is bad, and the policy of its audit lets it pass."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    WARNED = "warned"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A question that was asked of a training, and its answer.

    ``rule`` is the question, one of rules.py; ``suite`` the audit; ``message`` one line, ``detail`` what else is known.
    ``seconds`` is what its runs took. ``culprit`` is the line of the user's code that is to blame, None where none is
    known, and ``script`` what was audited; both files are told from the root of the repository.
    """

    rule: str
    suite: str
    name: str
    status: Outcome
    message: str
    detail: str = ""
    seconds: float | None = None
    culprit: Source | None = None
    script: str | None = None

    @property
    def place(self) -> tuple[str, int] | None:
        """The culprit's file and line, else the script's first, for the formats that ask for one."""
        if self.culprit is not None:
            return self.culprit.file, self.culprit.line
        return (self.script, 1) if self.script else None

    @property
    def fingerprint(self) -> str:
        """32 hex digits that stay the same while this is the same finding, also where its line moves."""
        parts = (self.rule, self.suite, self.name, self.culprit.file if self.culprit else "")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


_GATES = {
    GateName.REPEATABLE: "repeatable",
    GateName.BASELINE: "same-as-baseline",
    GateName.RESUME: "same-after-resume",
}
_VERDICTS = {
    Verdict.DETERMINISTIC: Outcome.PASSED,
    Verdict.NONDETERMINISTIC: Outcome.FAILED,
    Verdict.INCONCLUSIVE: Outcome.UNKNOWN,
}


def findings(report: Report) -> tuple[Finding, ...]:
    """Return what a report found: of an audit one for each recipe, of a check one for each gate, of others one.

    All text in them is plain; see plain.py.
    """
    found = tuple(_findings(report))
    interrupted = not isinstance(report, Comparison) and report.interrupted
    if interrupted and not any(one.status is Outcome.UNKNOWN for one in found):
        message = "interrupted: there is more that was not judged"
        suite = found[0].suite if found else _suite(report.command)
        found += (Finding(rule="complete", suite=suite, name="complete", status=Outcome.UNKNOWN, message=message),)
    return tuple(_plain(one) for one in found)


def _plain(found: Finding) -> Finding:
    culprit = found.culprit
    if culprit is not None:
        culprit = msgspec.structs.replace(culprit, file=line(in_repository(culprit.file)), what=line(culprit.what))
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
            yield _bisection(report)
        case VariationBisection():
            yield _variations(report)
        case Trace():
            yield _trace(report)
        case Audit():
            yield from (_group(report, group) for group in report.groups)
        case Check():
            yield from (_gate(checked, gate) for checked in report.checked for gate in checked.gates)
        case Comparison():
            yield _comparison(report)


def _suite(command: Sequence[str]) -> str:
    script = script_of(command)
    return in_repository(script) if script else "detaudit"


def _culprit(group: Group | None) -> Source | None:
    """Return the line to blame for a group whose runs differ."""
    if group is None or group.verdict is not Verdict.NONDETERMINISTIC:
        return None
    return next(iter(group.sources), None)


def _group(audit: Audit, group: Group) -> Finding:
    return Finding(
        rule="repeatable",
        suite=_suite(audit.command),
        name=group.recipe.name,
        status=_VERDICTS[group.verdict],
        message="; ".join(filter(None, [words.sentence(group), words.where(group)])),
        detail=_lines(_details(group)),
        seconds=_seconds([group]),
        culprit=_culprit(group),
        script=script_of(audit.command),
    )


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _details(group: Group) -> Iterator[str]:
    yield probes.sentence(group)
    yield from words.sources_lines(group)
    yield from (words.flags_line(group), words.varied_line(group), words.stages_line(group), words.replicas_line(group))
    failed = words.first_failure(group)
    if failed is not None:
        yield f"the end of what run {failed.id} wrote to stderr:"
        yield from failed.stderr_tail


def _seconds(groups: Iterable[Group]) -> float:
    return sum(run.wall_s for group in groups for run in group.runs)


def _of_audit(
    audit: Audit, rule: str, name: str, message: str, detail: Iterable[str], culprit: Source | None
) -> Finding:
    return Finding(
        rule=rule,
        suite=_suite(audit.command),
        name=name,
        status=_VERDICTS[audit.verdict],
        message=message,
        detail=_lines(detail),
        seconds=_seconds(audit.groups),
        culprit=culprit,
        script=script_of(audit.command),
    )


def _bisection(audit: Bisection) -> Finding:
    needed = [text for told in audit.needed or () for text in bisection.needed_lines(told)]
    around = [bisection.evidence(audit), *bisection.trouble(audit), *bisection.where(audit)]
    detail = [*around, *needed, *bisection.foot(audit)]
    culprit = _culprit(bisection.unmended(audit))
    return _of_audit(audit, "mendable", "flags", bisection.sentence(audit), detail, culprit)


def _variations(audit: VariationBisection) -> Finding:
    told = [text for one in audit.matters or () for text in variations.matters_lines(one)]
    seen = next((one.seen.trial for one in audit.matters or ()), None)
    around = [variations.evidence(audit), *variations.where(audit), *variations.last_words(audit)]
    detail = [*around, *told, *variations.foot(audit)]
    culprit = _culprit(next((group for group in audit.groups if group.recipe.name == seen), None))
    return _of_audit(audit, "unvarying", "variations", variations.sentence(audit), detail, culprit)


def _trace(audit: Trace) -> Finding:
    found, culprit = audit.culprit, None
    if found is not None and found.file and found.line:
        culprit = Source(file=found.file, line=found.line, what=traced.why(found))
    detail = [*traced.lines(audit), *traced.foot(audit)]
    return _of_audit(audit, "traceable", "trace", traced.sentence(audit), detail, culprit)


def _gate(checked: Checked, gate: Gate) -> Finding:
    groups = checked.audit.groups
    own = groups if gate.name is GateName.REPEATABLE else ()
    details = [text for group in own for text in _details(group)]
    return Finding(
        rule=_GATES[gate.name],
        suite=checked.name,
        name=gate.name,
        status=_status(gate),
        message=gate.message,
        detail=_lines([*details, *words.changes(gate.environment)]),
        seconds=_seconds(own) if own else None,
        culprit=_culprit(next(iter(own), None)),
        script=script_of(checked.audit.command),
    )


def _status(gate: Gate) -> Outcome:
    if gate.status is GateStatus.PASSED:
        return Outcome.PASSED
    if not gate.blocks:
        return Outcome.WARNED
    return Outcome.UNKNOWN if gate.status is GateStatus.UNKNOWN else Outcome.FAILED


def _comparison(report: Comparison) -> Finding:
    unlike = f"weights that ended unlike: {len(report.weights)} of {report.weights_compared}" if report.weights else ""
    tail = (comparison.losses_line(report), unlike, comparison.stages_line(report))
    return Finding(
        rule="same",
        suite="compare",
        name=f"{report.a.name} and {report.b.name}",
        status=Outcome.PASSED if report.verdict is Likeness.SAME else Outcome.FAILED,
        message=comparison.sentence(report),
        detail=_lines([*tail, *comparison.environment_lines(report)]),
        script=script_in(report.b.command),
    )
