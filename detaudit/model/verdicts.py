"""What a verdict is, and the exit status of a report; SARIF files name it too."""

from typing import NamedTuple

from detaudit.errors import ExitCode
from detaudit.model.audit import Audit
from detaudit.model.bisect import BisectOutcome, VaryOutcome
from detaudit.model.check import Check, CheckVerdict, Comparison, ComparisonVerdict
from detaudit.model.stage import Across, Verdict

AnyVerdict = Verdict | ComparisonVerdict | CheckVerdict | BisectOutcome | VaryOutcome
"""The answer of any report."""


class VerdictInfo(NamedTuple):
    """What a verdict is: the exit status, and what a trace of such runs says that found no culprit."""

    exit_code: ExitCode
    no_culprit: str


VERDICTS = {
    Verdict.NONDETERMINISTIC: VerdictInfo(ExitCode.NONDETERMINISTIC, "no culprit found"),
    Verdict.MACHINE_DEPENDENT: VerdictInfo(ExitCode.NONDETERMINISTIC, "no culprit found"),
    Verdict.INCONCLUSIVE: VerdictInfo(ExitCode.INCONCLUSIVE, "inconclusive"),
    Verdict.DETERMINISTIC: VerdictInfo(ExitCode.DETERMINISTIC, "nothing to trace"),
}
"""The verdicts, the worst first: that of an audit is the worst one of its groups."""

SAYS: dict[AnyVerdict, Verdict] = {
    **{verdict: verdict for verdict in Verdict},
    ComparisonVerdict.IDENTICAL: Verdict.DETERMINISTIC,
    ComparisonVerdict.DIFFERENT: Verdict.NONDETERMINISTIC,
    ComparisonVerdict.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    CheckVerdict.PASSED: Verdict.DETERMINISTIC,
    CheckVerdict.FAILED: Verdict.NONDETERMINISTIC,
    CheckVerdict.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    BisectOutcome.FIXED: Verdict.DETERMINISTIC,
    BisectOutcome.ALREADY_DETERMINISTIC: Verdict.DETERMINISTIC,
    BisectOutcome.NOT_FIXED: Verdict.NONDETERMINISTIC,
    BisectOutcome.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    VaryOutcome.ROBUST: Verdict.DETERMINISTIC,
    VaryOutcome.SENSITIVE: Verdict.NONDETERMINISTIC,
    VaryOutcome.CONTROL_DIFFERS: Verdict.INCONCLUSIVE,
    VaryOutcome.INCONCLUSIVE: Verdict.INCONCLUSIVE,
}
"""What each answer says of determinism."""


def exit_code(report: Audit | Comparison | Check) -> ExitCode:
    """Return the exit status of the command that made this report."""
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.verdict is Verdict.MACHINE_DEPENDENT and report.across is Across.WARN:
        return ExitCode.DETERMINISTIC
    return VERDICTS[SAYS[report.verdict]].exit_code
