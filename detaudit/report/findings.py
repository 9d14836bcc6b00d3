"""One list of findings for CI: its rules, and files as CI systems name them."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from detaudit.compat import StrEnum
from detaudit.errors import ExitCode
from detaudit.launch.workspace import repository_root
from detaudit.model import (
    SAYS,
    VERDICTS,
    Across,
    Audit,
    Bisection,
    Check,
    CheckedAudit,
    Comparison,
    Fix,
    Gate,
    GateName,
    GateStatus,
    Group,
    Report,
    Resumption,
    Source,
    Trace,
    VariationBisection,
    Verdict,
)
from detaudit.model.check import RunsMustMatch
from detaudit.notebooks.cells import SUFFIX, is_notebook, location_of
from detaudit.report import checks, fixes, resumes, searches, traces
from detaudit.report import groups as words
from detaudit.report.patches import Replacement, replacements
from detaudit.report.plain import line, plain
from detaudit.report.searches import Result

# Which file a report is about, and its path in the repository, as CI systems want it.


def script_of(command: Sequence[str]) -> str | None:
    """Return the file that a command of detaudit audits: the script, the module's, or the program after ``--``."""
    words = list(command[2:])
    at = words.index("--") if "--" in words else len(words)
    own, after = words[:at], words[at + 1 :]
    return script_in(own) or script_in(after) or next(iter(after), None)


def script_in(words: Sequence[str]) -> str | None:
    """Return the first Python file or module among the words of a command, None if there is none."""
    for index, word in enumerate(words):
        if word.endswith((".py", SUFFIX)) and not word.startswith("-"):
            return word
        if word == "-m" and index + 1 < len(words):
            return words[index + 1].replace(".", "/") + ".py"
    return None


def in_repository(file: str) -> str:
    """Return a path that is relative to the working directory as one relative to the root of its git repository.

    A path outside that repository is returned unchanged.
    """
    here = Path.cwd()
    root, path = repository_root(here), Path(os.path.normpath(here / file))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


# One list of findings from any report, for the formats of CI systems.


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
    repository. ``changes`` were tried and help, and are not made yet: all together, or none.
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
    changes: tuple[Replacement, ...] = ()

    @property
    def location(self) -> tuple[str, int] | None:
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
    GateName.COMMIT: "same-as-commit",
}
_OUTCOMES = {
    ExitCode.DETERMINISTIC: Outcome.PASSED,
    ExitCode.NONDETERMINISTIC: Outcome.FAILED,
    ExitCode.INCONCLUSIVE: Outcome.INCONCLUSIVE,
}


def findings(report: Report) -> tuple[Finding, ...]:
    """Return the findings of a report: one for each recipe of an audit or gate of a check, one for other reports.

    All text in them is plain; see plain.py.
    """
    all_findings = tuple(_findings(report))
    if report.interrupted and not any(one.status is Outcome.INCONCLUSIVE for one in all_findings):
        message = "interrupted: not everything was checked"
        suite = all_findings[0].suite if all_findings else _suite(report.command)
        rule = "complete"
        all_findings += (Finding(rule=rule, suite=suite, name=rule, status=Outcome.INCONCLUSIVE, message=message),)
    return tuple(_plain(one) for one in all_findings)


def _plain(finding: Finding) -> Finding:
    culprit = finding.culprit
    if culprit is not None:
        file, message = line(in_repository(culprit.file)), line(culprit.message)
        culprit = msgspec.structs.replace(culprit, file=file, message=message)
        if is_notebook(file):  # a cell is no line of its file
            cell = location_of(file, culprit.line).removeprefix(f"{file} ")
            culprit = msgspec.structs.replace(culprit, line=1, message=f"{cell}: {message}")
    return msgspec.structs.replace(
        finding,
        suite=line(finding.suite),
        name=line(finding.name),
        message=line(finding.message),
        detail=plain(finding.detail),
        culprit=culprit,
        script=line(in_repository(finding.script)) if finding.script else None,
    )


def _findings(report: Report) -> Iterator[Finding]:
    match report:
        case Bisection():
            yield _bisection(report, searches.bisection_result(report), "fixable", "flags")
        case VariationBisection():
            yield _bisection(report, searches.variations_result(report), "robust", "variations")
        case Trace():
            yield _trace(report)
        case Fix():
            yield _fix(report)
        case Resumption():
            yield _resumption(report)
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
    return Location(file=source.file, line=source.line, message=source.text()) if source else None


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
    message = (f"{through}: " if through else "") + "; ".join(
        filter(None, [words.verdict_sentence(group), words.where(group)])
    )
    return _of_audit(alone, "repeatable", group.recipe.name, message, words.details(group), _culprit(group))


def _outcome(audit: Audit) -> Outcome:
    dependent = audit.verdict is Verdict.MACHINE_DEPENDENT and audit.across is Across.WARN
    return Outcome.WARNED if dependent else _OUTCOMES[VERDICTS[audit.verdict].exit_code]


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _seconds(groups: Iterable[Group]) -> float:
    return sum(run.wall_s for group in groups for run in group.runs)


def _bisection(audit: Bisection | VariationBisection, result: Result, rule: str, name: str) -> Finding:
    differing, failed = result.differing, result.failed
    around = [words.where(differing), *words.source_lines(differing.sources)] if differing else []
    failure = [failed.reason.text()] if failed is not None and failed.reason is not None else []
    stderr = words.stderr_lines(failed) if failed is not None else []
    details = [text for heading, lines in result.details for text in (heading, *lines)]
    detail = [result.evidence, *failure, *stderr, *around, *details, *result.notes]
    return _of_audit(audit, rule, name, result.sentence, detail, _location(result.source))


def _trace(audit: Trace) -> Finding:
    answer, culprit, location = traces.answer(audit), audit.culprit, None
    if culprit is not None and culprit.file and culprit.line:
        code = f"{culprit.code}: " if culprit.code else ""
        location = Location(file=culprit.file, line=culprit.line, message=f"{code}{traces.culprit_sentence(culprit)}")
    detail = [*traces.lines(audit), *traces.notes(audit)]
    message = f"{answer.word}: {answer.sentence}"
    return _of_audit(audit, "no-divergence", "trace", message, detail, location)


def _fix(audit: Fix) -> Finding:
    answer, first = fixes.answer(audit), next(iter(audit.hunks), None)
    location = Location(file=first.file, line=first.line, message=next(fixes.evidence(audit))) if first else None
    detail = [*fixes.evidence(audit), *fixes.remains(audit), *audit.diff.splitlines(), *fixes.notes(audit)]
    finding = _of_audit(audit, "no-divergence", "fix", f"{answer.word}: {answer.sentence}", detail, location)
    return msgspec.structs.replace(finding, changes=() if audit.applied else tuple(replacements(audit.diff)))


def _resumption(audit: Resumption) -> Finding:
    answer = resumes.answer(audit)
    read = next((file for point in audit.points for file in point.checkpoints if file.line), None)
    location = Location(file=read.file, line=read.line, message=read.text()) if read is not None else None
    change, diff = resumes.restored(audit)
    detail = [*resumes.lines(audit), *change, *diff, *resumes.notes(audit)]
    return _of_audit(audit, "same-after-resume", "resume", f"{answer.word}: {answer.sentence}", detail, location)


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
        message="; ".join([gate.detail.text(), *sure]),
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


def _comparison(report: Comparison) -> Finding:
    lines = [checks.explanation(report), checks.losses_line(report), checks.weights_line(report)]
    parting, location = report.parting, None
    if parting is not None:
        lines += [parting.text(), *parting.places()]
        if parting.b is not None and parting.b.file:
            location = Location(file=parting.b.file, line=parting.b.line, message=parting.text())
    lines += [*checks.repeats(report), checks.code_line(report)]
    return Finding(
        rule="identical",
        suite="compare",
        name=f"{report.a.name} and {report.b.name}",
        status=_OUTCOMES[VERDICTS[SAYS[report.verdict]].exit_code],
        message=checks.comparison_sentence(report),
        detail=_joined([*lines, checks.stages_line(report), *checks.environment_lines(report)]),
        seconds=_seconds(report.groups) if report.groups else None,
        culprit=location,
        script=script_in(report.b.command),
    )


# The rules that findings keep or break: what each requires, and what to do if it is broken.


class Rule(NamedTuple):
    """What is required, and the help, in Markdown."""

    requirement: str
    help: str


RULES = {
    "repeatable": Rule(
        "All runs of a training must be bit-identical.",
        "`detaudit bisect SCRIPT` finds a minimal set of flags that fixes it, `detaudit trace SCRIPT` the line where "
        "the runs diverge.",
    ),
    "same-as-baseline": Rule(
        "A training must match its baseline in the lock file, bit for bit.",
        "`detaudit compare` shows where they first differ; `detaudit check --update` accepts the new result as the "
        "baseline.",
    ),
    "same-after-resume": Rule(
        "A training that is stopped and resumed must match an uninterrupted one, bit for bit.",
        "Look for state that the checkpoint does not contain: the optimizer, a random generator, the position in the "
        "data.",
    ),
    "same-as-commit": Rule(
        "A training must give what it gave at another commit, bit for bit.",
        "`detaudit compare SCRIPT --against REF --trace` shows where the two codes part.",
    ),
    "identical": Rule(
        "Two recordings must match, bit for bit.",
        "Start with the first step and stage that differ.",
    ),
    "fixable": Rule(
        "A set of flags must make the training deterministic.",
        "The finding names lines that may be the cause and that no set of flags tried fixes.",
    ),
    "no-divergence": Rule(
        "No line may introduce a difference between runs.",
        "The finding names the line, and a fix if one is known.",
    ),
    "robust": Rule(
        "Variations of the environment must not change the training.",
        "The finding says how to fix or pin each variation that does.",
    ),
    "complete": Rule(
        "An audit must run to its end.",
        "It was interrupted: run it again.",
    ),
}
