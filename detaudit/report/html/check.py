"""The page of a check: its gates, why some did not pass, and the runs of each audit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from detaudit.model import Check, CheckedAudit, Excerpt, Gate, GateName, GateStatus
from detaudit.model.figures import NO_FIGURES, Figures
from detaudit.report import checks
from detaudit.report.document import Block, Code, Section, plain, section
from detaudit.report.html import run
from detaudit.report.html.figures import Part, blocks
from detaudit.report.plain import line as plain_line


def overview(check: Check) -> Part | None:
    """Return the gates, None if none ran."""
    return next(iter(blocks("gates", "Gates", [section(checks.table(check))])), None)


@dataclass(frozen=True)
class GateView:
    """What is known of a gate; ``folded`` if it passed."""

    title: str
    sections: Sequence[Section]
    excerpts: Sequence[Excerpt]
    folded: bool


def why(check: Check) -> Part | None:
    """Return what is known of the gates, those that passed folded; None if nothing is."""
    gates = [_gate(one, gate, said) for one, gate, said in checks.details_of_gates(check)]
    return Part("why", "Gates in detail", "gates.html", gates) if gates else None


def _gate(one: CheckedAudit, gate: Gate, said: Sequence[Block]) -> GateView:
    passed = gate.status is GateStatus.PASSED
    differs = gate.name is GateName.REPEATABLE and gate.status is GateStatus.FAILED
    excerpts = [excerpt for group in one.audit.groups for excerpt in group.excerpts] if differs else []
    title = f"{one.name}, {gate.name}: {checks.status(gate)}"
    return GateView(plain_line(title), [section(*map(plain, said))], excerpts, passed)


def parts(check: Check, figures: Figures) -> list[Part]:
    """Return what changed in the lock file, and the parts of each audit, folded if all of its gates passed."""
    changes = blocks("lock", f"Updated {check.lock_file}", [section(Code(checks.lock_lines(check)))])
    audits = [
        replace(part, id=f"{part.id}-{number}", title=f"{one.name}: {part.title}", folded=_passed(one))
        for number, one in enumerate(check.audits)
        for part in run.parts(one.audit, figures.audits[number] if number < len(figures.audits) else NO_FIGURES)
    ]
    return [*changes, *audits]


def links(check: Check, shown: Sequence[Part]) -> list[tuple[str, str]]:
    """Return the navigation of a page with these parts: a link for each audit, to its first part."""
    ids = [part.id for part in shown]
    anchors = [("lock", "Lock file")] if "lock" in ids else []
    for number, one in enumerate(check.audits):
        first = next((part for part in ids if part.endswith(f"-{number}")), None)
        anchors += [(first, one.name)] if first is not None else []
    return anchors


def _passed(one: CheckedAudit) -> bool:
    return bool(one.gates) and all(gate.status is GateStatus.PASSED for gate in one.gates)
