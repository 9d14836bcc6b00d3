"""The page of a check: its gates, why some did not pass, and the runs of each audit."""

from dataclasses import replace

from detaudit.model import Check
from detaudit.model.figures import NO_FIGURES, Figures
from detaudit.report import checks
from detaudit.report.blocks import Code, section
from detaudit.report.html import run
from detaudit.report.html.parts import Part, blocks


def overview(check: Check) -> Part | None:
    """Return the gates, None if none ran."""
    return next(iter(blocks("gates", "Gates", [section(checks.table(check))])), None)


def why(check: Check) -> Part | None:
    """Return what is known of the gates that did not pass, None if all did."""
    return next(iter(blocks("why", "Gates in detail", [section(*one) for one in checks.gate_details(check)])), None)


def parts(check: Check, found: Figures) -> list[Part]:
    """Return what changed in the lock file, and the parts of each audit."""
    changes = blocks("lock", f"Updated {check.lock_file}", [section(Code(checks.lock_lines(check)))])
    audits = [
        replace(part, id=f"{part.id}-{number}", title=f"{one.name}: {part.title}")
        for number, one in enumerate(check.audits)
        for part in run.parts(one.audit, found.audits[number] if number < len(found.audits) else NO_FIGURES)
    ]
    return [*changes, *audits]
