"""The exit status of a report; SARIF files name it too."""

from detaudit.errors import ExitCode
from detaudit.model.audit import Audit
from detaudit.model.check import Check, CheckVerdict, Comparison, ComparisonVerdict
from detaudit.model.stage import Across, Verdict

_CODES = {
    Verdict.DETERMINISTIC: ExitCode.DETERMINISTIC,
    Verdict.NONDETERMINISTIC: ExitCode.NONDETERMINISTIC,
    Verdict.MACHINE_DEPENDENT: ExitCode.NONDETERMINISTIC,
    Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    ComparisonVerdict.IDENTICAL: ExitCode.DETERMINISTIC,
    ComparisonVerdict.DIFFERENT: ExitCode.NONDETERMINISTIC,
    ComparisonVerdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    CheckVerdict.PASSED: ExitCode.DETERMINISTIC,
    CheckVerdict.FAILED: ExitCode.NONDETERMINISTIC,
    CheckVerdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}


def exit_code(report: Audit | Comparison | Check) -> ExitCode:
    """Return the exit status of the command that made this report."""
    if not isinstance(report, Comparison) and report.interrupted:
        return ExitCode.INTERRUPTED
    if report.verdict is Verdict.MACHINE_DEPENDENT and report.across is Across.WARN:
        return ExitCode.DETERMINISTIC
    return _CODES[report.verdict]
