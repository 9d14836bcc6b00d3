"""What differs between runs and does not decide: files, and lines on stdout."""

from detaudit.model import FileDifference, Group, PrintedDifference, Verdict
from detaudit.report.messages.wording import shortened

MOST = 5


def notes(group: Group) -> list[str]:
    """Return which files and lines differ, if that is all that differs."""
    if group.verdict is Verdict.NONDETERMINISTIC:
        return []
    found = [_file(one) for one in group.file_differences]
    lines = [f"files that differ, and do not decide: {shortened(found, most=MOST)}"] if found else []
    return lines + ([_printed(group.printed_difference)] if group.printed_difference else [])


def _file(found: FileDifference) -> str:
    reason = f"only run {found.only_run} wrote it" if found.only_run else shortened(found.parts, found.more)
    if found.problem:
        reason = f"not compared: {found.problem}"
    return f"{found.path} ({reason})" if reason else found.path


def _printed(found: PrintedDifference) -> str:
    sides = zip(found.runs, found.lines, strict=True)
    shown = [f"run {run} {f'printed {line!r}' if line else 'did not'}" for run, line in sides]
    return f"stdout differs, and does not decide: {', '.join(shown)}"
