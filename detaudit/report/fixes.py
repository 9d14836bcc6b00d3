"""What reports say about a fix: the answer, the changes with their evidence, and what remains."""

from collections.abc import Iterator

from detaudit.model import Difference, Fix, Hunk, Verdict
from detaudit.model.fact import count
from detaudit.model.fix import in_one_line
from detaudit.model.problems import EarlierRunsDiffer
from detaudit.notebooks.cells import location_of
from detaudit.report import groups, traces


def answer(fix: Fix) -> traces.Answer:
    """Return the answer: in a word or two, and in one sentence."""
    runs = count(len(fix.groups[0].runs), "run") if fix.groups else "no run"
    if not fix.groups or not fix.groups[0].runs:
        return traces.Answer("inconclusive", "no run finished")
    verdict = fix.groups[0].verdict
    if verdict is Verdict.DETERMINISTIC and not (fix.hunks or fix.variables):
        return traces.Answer("nothing to fix", f"{runs} match")
    if fix.interrupted and verdict is Verdict.DETERMINISTIC:
        return traces.Answer("not proven", f"{runs} match with {fix.changes}, but the proof was interrupted")
    if verdict is Verdict.DETERMINISTIC and not fix.variables:
        done = "applied" if fix.applied else "proven"
        return traces.Answer("fixed", f"{fix.changes}, {done}: {runs} match with {_them(fix)}")
    if verdict is Verdict.DETERMINISTIC:
        names = ", ".join(f"{one.name}={one.value}" for one in fix.variables)
        changes = f"{fix.changes} and " if fix.hunks else ""
        return traces.Answer("not fixed in code", f"{runs} match with {changes}{names} set before Python starts")
    if verdict is Verdict.INCONCLUSIVE and fix.hunks and not isinstance(fix.groups[0].reason, EarlierRunsDiffer):
        return traces.Answer(
            "not proven", f"with {fix.changes}, no two runs differ, but what was compared proves nothing"
        )
    if verdict is Verdict.INCONCLUSIVE:
        return traces.Answer("inconclusive", groups.verdict_sentence(fix.groups[0]))
    first = fix.groups[0].first_difference
    at = f", first {first.where()}" if first is not None else ""
    if fix.hunks:
        later = first is not None and all(
            one.without is not None and one.without.order < first.order for one in fix.hunks
        )
        if fix.interrupted and not later:  # the group is of runs without the last change
            return traces.Answer(
                "not proven", f"with {fix.changes}, runs differ later or match, but what remains was not traced"
            )
        return traces.Answer("partly fixed", f"with {fix.changes}, runs {'differ later' if later else 'differ'}{at}")
    return traces.Answer("not fixed", f"no change that was tried moves the first difference{at}")


def _them(fix: Fix) -> str:
    return "it" if len(fix.hunks) == 1 else "them"


def evidence(fix: Fix) -> Iterator[str]:
    """Yield each change with where runs differ without it."""
    for one in fix.hunks:
        yield f"{one.location()}: {_summary(one)}{_without(one.without)}"
    for variable in fix.variables:
        yield f"{variable.name}={variable.value}, before Python starts{_without(variable.without)}"


def _summary(hunk: Hunk) -> str:
    lines = in_one_line(hunk.new or hunk.old) or "a line"
    return lines if hunk.new else f"removed: {lines}"


def _without(first: Difference | None) -> str:
    return f" (without it, runs differ {first.where()})" if first is not None else ""


def remains(fix: Fix) -> Iterator[str]:
    """Yield what is known of the difference that remains."""
    if fix.culprit is not None:
        location = location_of(fix.culprit.file, fix.culprit.line) if fix.culprit.file else "outside your code"
        changed = any(one.file == fix.culprit.file for one in fix.hunks)
        yield f"remains: {location}{' of the changed file' if changed else ''}, {traces.culprit_sentence(fix.culprit)}"
        if fix.culprit.code:
            yield f"> {fix.culprit.code}"
    elif fix.narrowed_to is not None:
        yield f"remains: {traces.narrowed(fix.narrowed_to)}"
        yield from (source.with_place() for source in fix.narrowed_to.suspects)


def notes(fix: Fix) -> list[str]:
    """Return where it says why changes help, what was tried and refused, and how many runs that took."""
    pages = dict.fromkeys(one.rule or one.flag for one in fix.hunks if one.rule or one.flag)
    why = [f"why: `detaudit recipes show {name}`" for name in pages]
    refused = [f"not advised: {one.text()}" for one in fix.refused]
    return [*why, *refused, f"{count(fix.total_runs, 'run')} in total"]
