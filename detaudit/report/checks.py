"""What reports say about a check: its gates, and why some did not pass."""

from collections.abc import Iterator

from detaudit.model import Check, CheckedAudit, Gate, GateName, GateStatus
from detaudit.model.check import MatchesBaseline, RunsMatch
from detaudit.report import words
from detaudit.report.blocks import Block, Heading, Items, Stderr, Table
from detaudit.report.messages import gates
from detaudit.report.messages.wording import duration

HEADERS = ("AUDIT", "GATE", "RESULT", "RUNS", "TIME")
MOST_CHANGES = 12


def table(check: Check) -> Table:
    """Return a table of the gates; the first one of each audit has its runs, and the time that they took."""
    rows = []
    for one in check.audits:
        runs = one.audit.groups[0].runs if one.audit.groups else ()
        took = duration(sum(run.wall_s for run in runs))
        first = (one.name, f"{len(runs):,}", took)
        if not one.gates:
            rows.append((one.name, "-", "interrupted", first[1], took))
        for gate in one.gates:
            rows.append((first[0], gate.name, status(gate), first[1], first[2]))
            first = ("", "", "")
    return Table(HEADERS, rows)


def status(gate: Gate) -> str:
    """Return a gate's status, and whether it is only a warning."""
    warning = gate.status is not GateStatus.PASSED and not gate.blocking
    return f"{gate.status} (warning)" if warning else gate.status


def sentence(check: Check) -> str:
    """Return how many gates have each status, the worst first."""
    found = [gate.status for one in check.audits for gate in one.gates]
    order = (GateStatus.FAILED, GateStatus.INCOMPARABLE, GateStatus.INCONCLUSIVE, GateStatus.PASSED)
    return ", ".join(f"{found.count(status):,} {status}" for status in order if status in found) or "no gate ran"


def gate_details(check: Check) -> Iterator[list[Block]]:
    """Yield what is known of the gates, each below its heading; see details_of_gates."""
    for one, gate, found in details_of_gates(check):
        yield [Heading(f"{one.name}, {gate.name}: {status(gate)}"), *found]


def details_of_gates(check: Check) -> Iterator[tuple[CheckedAudit, Gate, list[Block]]]:
    """Yield what is known about each gate that did not pass, or that passed with a reservation.

    That is a changed environment, a step after which runs were ended, or how rare a difference would go unnoticed.
    """
    for one in check.audits:
        for gate in one.gates:
            ended = isinstance(gate.detail, RunsMatch | MatchesBaseline) and gate.detail.through is not None
            sure = surety(one, gate)
            if gate.status is not GateStatus.PASSED or gate.environment_changes or ended or sure:
                changes = words.changes(gate.environment_changes, MOST_CHANGES, "in check.json")
                lines = [gates.sentence(gate.detail), *sure, *_sources(one, gate), *changes]
                stderr = _stderr(one, gate)
                yield one, gate, [Items(lines), *([stderr] if stderr else [])]


def surety(one: CheckedAudit, gate: Gate) -> list[str]:
    """Return how rare a difference the matching runs of a gate would have caught."""
    if gate.name is not GateName.REPEATABLE or gate.status is not GateStatus.PASSED:
        return []
    return [line for group in one.audit.groups if (line := words.evidence_line(group))]


def _sources(one: CheckedAudit, gate: Gate) -> list[str]:
    """Return the lines of the user's code that may be why runs differ."""
    if gate.name is not GateName.REPEATABLE or gate.status is not GateStatus.FAILED:
        return []
    return [line for group in one.audit.groups for line in words.source_lines(group.sources)]


def _stderr(one: CheckedAudit, gate: Gate) -> Stderr | None:
    """Return the last lines of a run that failed, below the first gate of its audit."""
    if gate.status is not GateStatus.INCONCLUSIVE or gate is not one.gates[0]:
        return None
    return next(filter(None, map(words.stderr, one.audit.groups)), None)


def lock_lines(check: Check) -> list[str]:
    """Return what changed in the lock file."""
    return [gates.lock_change(change) for change in check.lock_changes]
