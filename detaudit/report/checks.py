"""The words for a check: its gates as a table, and what lies behind those that did not pass."""

from collections.abc import Iterator

from detaudit.model import Check, Checked, Gate, GateName, GateStatus
from detaudit.report import words

HEADERS = ("AUDIT", "GATE", "RESULT", "RUNS", "TIME")
ALIGN = ("left", "left", "left", "right", "right")
MOST_CHANGES = 12


def rows(check: Check) -> list[tuple[str, str, str, str, str]]:
    """Return a row for each gate of each audit; runs and time (seconds of all its runs) stand beside the first."""
    found = []
    for one in check.checked:
        runs = one.audit.groups[0].runs if one.audit.groups else ()
        took = f"{sum(run.wall_s for run in runs):.1f} s"
        first = (one.name, str(len(runs)), took)
        if not one.gates:
            found.append((one.name, "-", "interrupted", first[1], took))
        for gate in one.gates:
            found.append((first[0], gate.name, result(gate), first[1], first[2]))
            first = ("", "", "")
    return found


def result(gate: Gate) -> str:
    """Return a gate's status, and whether it only warns."""
    return f"{gate.status} (warning)" if gate.status is not GateStatus.PASSED and not gate.blocks else gate.status


def sentence(check: Check) -> str:
    """Return how many gates came to what, the worst first."""
    states = [gate.status for one in check.checked for gate in one.gates]
    order = (GateStatus.FAILED, GateStatus.INCOMPARABLE, GateStatus.UNKNOWN, GateStatus.PASSED)
    return (
        ", ".join(f"{states.count(status)} {status}" for status in order if status in states) or "no gate was reached"
    )


def told(check: Check) -> Iterator[tuple[str, list[str]]]:
    """Yield, for each gate with something to tell, its audit, name and status, and lines about it."""
    for one in check.checked:
        for gate in one.gates:
            if gate.status is not GateStatus.PASSED or gate.environment:
                yield (
                    f"{one.name}, {gate.name}: {result(gate)}",
                    [
                        gate.message,
                        *_sources(one, gate),
                        *words.changes(gate.environment, MOST_CHANGES, "in check.json"),
                        *_end(one, gate),
                    ],
                )


def _sources(one: Checked, gate: Gate) -> list[str]:
    """Return the lines of the user's code that may be why runs differ."""
    if gate.name is not GateName.REPEATABLE or gate.status is not GateStatus.FAILED:
        return []
    return [line for group in one.audit.groups for line in words.sources_lines(group)]


def _end(one: Checked, gate: Gate) -> list[str]:
    """Return the last words of a run that failed."""
    failed = next((run for group in one.audit.groups for run in group.runs if run.stderr_tail), None)
    if gate.status is not GateStatus.UNKNOWN or failed is None or gate is not one.gates[0]:
        return []
    return words.last_words(failed)


def updated(check: Check) -> list[str]:
    """Return what became other in the lock file."""
    return [f"{check.lock} was written:", *(f"  {line}" for line in check.updated)] if check.updated else []
