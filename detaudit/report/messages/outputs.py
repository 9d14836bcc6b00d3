"""What differs in what left the runs: files, printed text, the exit status."""

import shlex
from collections.abc import Iterable

from detaudit.model import Group, OutputDifference, OutputKind, Verdict
from detaudit.model.fact import count
from detaudit.model.outputs import EXIT_STATUS, STDERR, STDOUT, Unread
from detaudit.report.messages.wording import duration, shortened, size

MOST = 5

_LISTED = {
    OutputKind.MEASUREMENT: "measurements",
    OutputKind.IDENTIFIER: "what a run is known by",
    OutputKind.GENERATOR: "states of random generators",
    OutputKind.STDERR_LINES: "lines on stderr that only some runs have",
    OutputKind.UNDECIDED: "left out by --compare training",
}
"""Differences that do not decide, and why."""


def what(found: OutputDifference) -> str:
    """Return what differs: ``submission.csv (row 1, target: 3.41 and 3.39)``."""
    inside = ": ".join(part for part in (found.at, _values(found)) if part)
    more = f"{inside}, and {count(found.more, 'more value')}" if found.more else inside
    return f"{found.path} ({more})" if more else found.path


def reservation(found: OutputDifference) -> str:
    """Return why a difference does not decide, ``""`` if it does."""
    if found.decides:
        return ""
    why = f"does not decide: {_LISTED[found.kind]}" if found.kind in _LISTED else "may be a result or not"
    return f" ({why})"


def where(found: OutputDifference) -> str:
    """Return ``in submission.csv: row 1, target: 3.41 and 3.39``."""
    return ": ".join(part for part in (f"in {found.path}", found.at, _values(found)) if part)


def in_table(found: OutputDifference) -> str:
    """Return it for a cell of a table: ``saved: submission.csv``."""
    if found.path == EXIT_STATUS:
        return f"{EXIT_STATUS} {found.values[1]}"
    if found.path in (STDOUT, STDERR):
        return f"printed: {found.path}, {found.at}" if found.at else f"printed: {found.path}"
    return f"saved: {found.path}"


def _values(found: OutputDifference) -> str:
    match found.only_run:
        case 0:
            return " and ".join(found.values) if all(found.values) else ""
        case one:
            run = found.runs[one - 1]
            said = f" {found.values[one - 1]!r}" if found.values[one - 1] else ""
            return f"only run {run} has it{said}" if run else f"only one of them has it{said}"


def settling(found: OutputDifference) -> str:
    """Return the option that settles whether a difference counts."""
    match found.kind:
        case OutputKind.WORDS:
            return "--ignore-text REGEX leaves such text out"
        case OutputKind.AMBIGUOUS if found.path in (STDOUT, STDERR):
            return "--ignore-text REGEX leaves it out if it is a measurement"
        case OutputKind.UNREAD:
            return "--file-budget TIME,SIZE reads more, --ignore GLOB leaves files out"
        case _:
            path = shlex.quote(found.path)
            return f"--ignore {path} leaves the file out, --artifact {path} compares its bytes"


def names(found: Iterable[OutputDifference], first: OutputDifference) -> str:
    """Return the files and streams besides that of the first difference, ``""`` if there is no other."""
    return shortened(dict.fromkeys(one.path for one in found if one.path not in ("", first.path)), most=MOST)


def open_reason(first: OutputDifference, more: int, others_in: str = "") -> str:
    """Return why nobody can say whether the results of runs differ, and what settles it.

    ``others_in`` names where the others are.
    """
    match first.kind:
        case OutputKind.WORDS:
            said = f"the words on {what(first)} differ"
        case OutputKind.AMBIGUOUS:
            said = f"{what(first)} differs, which may be a measurement or a result"
        case OutputKind.UNREAD:
            said = f"not all that the runs wrote was read: {unread(first.unread) if first.unread else ''}"
        case _:
            said = f"{first.path} differs and cannot be read: {first.problem}"
    others = f", and {count(more, 'more difference')} like this" if more else ""
    others += f" ({others_in})" if more and others_in else ""
    return (
        f"the trainings match, but {said}{others}. {settling(first)}; --compare training compares the trainings alone"
    )


def unread(found: Unread) -> str:
    """Return what was not read of what a run wrote, and why."""
    if not found.count:
        return "a process opened more files than are recorded"
    files = shortened(found.files, found.count - len(found.files))
    budget = f"{duration(found.budget.seconds, 'g')} or {size(found.budget.bytes)}"
    return f"{count(found.count, 'file')} of {size(found.size)} after {budget} ({files})"


def trainings_match(found: OutputDifference, others_in: str = "") -> str:
    """Return the sentence of a verdict if only what left the runs differs, also in what ``others_in`` names."""
    also = f", and so do other outputs: {others_in}" if others_in else ""
    return f"the trainings match, {found.path} differs{f' ({found.at})' if found.at else ''}{also}"


def notes(group: Group) -> list[str]:
    """Return what differs and does not decide, if that is all that differs."""
    if group.verdict is Verdict.NONDETERMINISTIC:
        return []
    by_kind = {kind: [what(one) for one in group.output_differences if one.kind is kind] for kind in _LISTED}
    return [
        f"differs, and does not decide ({_LISTED[kind]}): {shortened(texts, most=MOST)}"
        for kind, texts in by_kind.items()
        if texts
    ]
