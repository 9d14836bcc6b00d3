"""What the reporters for people say of a bisection: the table of its trials, and the answer."""

from collections import Counter
from collections.abc import Iterator

from detaudit.model import Alternative, Bisection, Group, Needed
from detaudit.report import trials, words

HEADERS = (*trials.HEADERS, "RUNS MATCH", "FLAGS")
ALIGN = trials.ALIGN
MOST_FLAGS = 3


def rows(audit: Bisection) -> list[list[str]]:
    """Return a row for each trial."""
    mended = frozenset(one for told in audit.needed or () for one in (told.flag, *told.goes_with))
    return [_row(group, mended if audit.needed else None) for group in audit.groups]


def _row(group: Group, mended: frozenset[str] | None) -> list[str]:
    first = next((run for run in group.runs if run.ranks), None)
    flags = ("* " if frozenset(group.recipe.flags) == mended else "") + _flags(group.recipe.flags)
    return [*trials.cells(group, len(group.runs), first), trials.match(group), flags]


def _flags(flags: tuple[str, ...]) -> str:
    if not flags:
        return "none: the script as it stands"
    shown = ", ".join(flags[:MOST_FLAGS])
    return f"{shown} and {len(flags) - MOST_FLAGS} more" if len(flags) > MOST_FLAGS else shown


def sentence(audit: Bisection) -> str:
    """Return the answer in one sentence."""
    done = f"{len(audit.groups)} trial{'s' * (len(audit.groups) != 1)}, {audit.launches} runs"
    if audit.outcome == "mended":
        count = len(audit.needed or ())
        return f"{count} flag{'s' * (count != 1)} make{'s' * (count == 1)} it deterministic ({done})"
    if audit.outcome == "already-deterministic":
        return f"it is deterministic as it stands: no flag is needed ({done})"
    if audit.outcome == "not-mended":
        return f"no flag that applies here makes it deterministic ({done})"
    if audit.best is not None:
        return f"no answer yet; under {', '.join(audit.best) or 'no flag'} all runs so far match ({done})"
    return f"no answer ({done})"


def evidence(audit: Bisection) -> str:
    """Return what the answer rests on, ``""`` where there is none."""
    found = audit.verified
    if found is None:
        return ""
    them = "nothing set" if not audit.needed else "it" if len(audit.needed) == 1 else "them"
    return (
        f"{found.runs} runs with {them} match bit for bit{trials.bound(found.confidence, 'runs')}. A difference that "
        f"shows in one run of {1 / found.rate:.0f} would be missed with probability {found.overlooked:.1%}"
    )


def needed_lines(told: Needed) -> Iterator[str]:
    """Yield what is to be said of a needed flag, the first line without an indent."""
    yield f"{told.flag}: {told.title}"
    if told.without is not None:
        a, b = told.without.runs
        yield (
            f"without it, runs {a} and {b} of trial {trials.name(told.without.trial)} differ at "
            f"step {told.without.step}, {told.without.stage}"
        )
    else:
        yield "without it, the training fails, so that its need is not proven"
    if told.cost is not None:
        yield f"time of a run with it: {told.cost:.2f} times that without it"
    if told.goes_with:
        yield f"goes with: {', '.join(told.goes_with)}"
    yield f"in the script, {told.where}: {told.in_script}"
    for other in told.instead:
        yield _alternative(other)


def _alternative(other: Alternative) -> str:
    if not other.matching:
        return f"instead, not tried (--alternatives): {other.flag}"
    cost = f", {other.cost:.2f} times the time" if other.cost is not None else ""
    return f"instead: {other.flag} ({other.matching} runs match{cost})"


def foot(audit: Bisection) -> list[str]:
    """Return the lines below the answer: what was not needed, what failed, what did not apply."""
    lines = []
    if audit.not_needed:
        lines.append(f"tried and not needed: {', '.join(audit.not_needed)}")
    lines += [f"the training fails under {one.flag}: {one.message}" for one in audit.failing]
    if audit.outcome == "not-mended":
        tried = sorted({flag for group in audit.groups for flag in group.recipe.flags})
        lines.append(f"tried: {', '.join(tried) or 'nothing'}")
    reasons = Counter(audit.not_applicable.values())
    if reasons:
        counted = ", ".join(f"{reason} ({number})" for reason, number in reasons.most_common())
        lines.append(f"not tried: {len(audit.not_applicable)} flags, because {counted}; audit.json names them")
    return lines


def trouble(audit: Bisection) -> list[str]:
    """Return why nothing could be judged, with the end of what the script wrote to stderr."""
    group = audit.groups[0] if audit.groups else None
    if audit.outcome != "unresolved" or audit.interrupted or group is None:
        return []
    bad = words.first_failure(group)
    return [group.reason or "", *(words.last_words(bad) if bad else ())]


def where(audit: Bisection) -> list[str]:
    """Return where the difference enters that nothing mends, and the lines that may be why."""
    last = unmended(audit)
    return [words.where(last), *(f"  {line}" for line in words.sources_lines(last))] if last else []


def unmended(audit: Bisection) -> Group | None:
    """Return the trial with the most flags whose runs differ, where nothing mends that."""
    differing = [group for group in audit.groups if group.divergence is not None]
    if audit.outcome != "not-mended" or not differing:
        return None
    return max(differing, key=lambda group: len(group.recipe.flags))
