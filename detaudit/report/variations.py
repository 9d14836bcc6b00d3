"""What the reporters for people say of a bisection over variations: the table of its trials, and the answer."""

from collections.abc import Iterator

from detaudit.model import Group, Matters, Seen, VariationBisection
from detaudit.report import trials, words

HEADERS = (*trials.HEADERS, "AS THE CONTROL", "VARIED")
ALIGN = trials.ALIGN
MOST_NAMES = 3
NOTE = (
    "Runs of unlike environments were compared here: in each trial but the first, what is named varies from run to "
    "run, and the control's first run stands beside."
)


def rows(audit: VariationBisection) -> list[list[str]]:
    """Return a row for each trial; its numbers are those of its last run."""
    return [_row(group, tuple(audit.controls)) for group in audit.groups]


def _row(group: Group, asked: tuple[str, ...]) -> list[str]:
    own = group.runs[1:] if group.varied else group.runs
    last = next((run for run in reversed(own) if run.ranks), None)
    varied = _varied([one.id for one in group.varied], asked)
    return [*trials.cells(group, len(own), last), trials.match(group), varied]


def _varied(names: list[str], asked: tuple[str, ...]) -> str:
    if not names:
        return "nothing: the control"
    rest = [name for name in asked if name not in names]
    if len(names) > MOST_NAMES:
        return f"all but {', '.join(rest)}" if rest else f"all {len(names)}"
    return ", ".join(names)


def sentence(audit: VariationBisection) -> str:
    """Return the answer in one sentence."""
    done = f"{len(audit.groups)} trial{'s' * (len(audit.groups) != 1)}, {audit.launches} runs"
    names = ", ".join(one.variation for one in audit.matters or ())
    if audit.answer == "some-matter":
        count = len(audit.matters or ())
        return f"{count} variation{'s' * (count != 1)} matter{'s' * (count == 1)}: {names} ({done})"
    if audit.answer == "nothing-matters":
        return f"nothing that varied changes the training ({done})"
    if audit.answer == "control-differs":
        return (
            "the runs of the control differ from each other although all that could vary was held still: the training "
            f"is not deterministic by itself, and no variation can be blamed ({done})"
        )
    return f"no answer ({done})"


def evidence(audit: VariationBisection) -> str:
    """Return what the answer rests on, ``""`` where there is none."""
    found = audit.verified
    if found is None:
        return ""
    rate = trials.bound(found.confidence, "such runs")
    if not audit.no_matter:
        return f"{found.runs} runs with all of it held still match bit for bit{rate}"
    count = found.runs - 1
    runs = f"{count} run{'s' * (count != 1)} in which {'all the rest' if audit.matters else 'all of it'} varied"
    return (
        f"{runs} match{'es' * (count == 1)} the control bit for bit{rate}. A difference that shows in one run of "
        f"{1 / found.rate:.0f} would be missed with probability {found.overlooked:.1%}"
    )


def matters_lines(told: Matters) -> Iterator[str]:
    """Yield what is to be said of a variation that matters, the first line without an indent."""
    yield f"{told.variation}: {told.title}"
    yield _seen(told.seen)
    if told.beside:
        yield f"alone it does not show; it does beside: {', '.join(told.beside)}"
    yield from told.lines[: words.MOST_SOURCES]
    if told.legitimate:
        yield "other results are to be expected of it: this is no fault of the script"
    yield f"what to do: {told.cure}"
    for flag, line in zip(told.flags, told.in_script, strict=True):
        yield f"held still by --flag {flag}; in the script: {line}"


def _seen(seen: Seen) -> str:
    trial = f"run {seen.runs[1]} of trial {trials.name(seen.trial)}, {', '.join(seen.values)},"
    if seen.failed:
        return f"{trial} fails where the control does not: {seen.failed}"
    return f"{trial} first differs from the control at step {seen.step}, {seen.stage}: {seen.cause}"


def where(audit: VariationBisection) -> list[str]:
    """Return where the control differs from itself, and the lines that may be why."""
    if audit.answer != "control-differs":
        return []
    control = audit.groups[0]
    return [words.where(control), *(f"  {line}" for line in words.sources_lines(control))]


def foot(audit: VariationBisection) -> list[str]:
    """Return the lines below the answer: what does not matter, what could not vary, what held the control still."""
    lines = [f"varied and does not matter: {', '.join(audit.no_matter)}"] if audit.no_matter else []
    lines += [f"not varied: {name} ({reason})" for name, reason in audit.left_out.items()]
    lines.append(f"the control: {'; '.join(f'{name} ({value})' for name, value in audit.controls.items())}")
    return [*lines, NOTE]


def last_words(audit: VariationBisection) -> list[str]:
    """Return the end of what the control wrote to stderr, where it failed."""
    run = words.first_failure(audit.groups[0]) if audit.answer == "unresolved" and audit.groups else None
    return list(run.stderr_tail) if run is not None else []
