"""The page of a bisection: the needed flags, the trials, what the answer rests on, and what each flag costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from detaudit.model import Alternative, Bisection, Group, NeededFlag, VariationBisection
from detaudit.report import groups, searches
from detaudit.report.document import Heading, Items, Mood, Notes, Section, Table, Text, section
from detaudit.report.html import captions, charts
from detaudit.report.html.figures import MOODS, Part, blocks

MOST_FLAGS = 40
"""Rows of the table of trials; flags beyond that are in the table below it."""


@dataclass(frozen=True)
class Trial:
    """A trial: a column of the table of flags and trials."""

    name: str
    runs: int
    match: str
    mood: str
    is_answer: bool


@dataclass(frozen=True)
class Matrix:
    """Which flags each trial set. A cell is the text and the class of a flag in a trial, and what it says in words."""

    trials: Sequence[Trial]
    rows: Sequence[tuple[str, bool, Sequence[tuple[str, str, str]]]]
    more: str


def result(audit: Bisection | VariationBisection) -> searches.Result:
    """Return a bisection in words."""
    return searches.bisection_result(audit) if isinstance(audit, Bisection) else searches.variations_result(audit)


def why(audit: Bisection | VariationBisection) -> Part | None:
    """Return what is needed, or what is known without an answer; None if that is nothing."""
    if isinstance(audit, Bisection) and audit.needed:
        return Part("needed", "Needed flags", "needed.html", [_needed(one) for one in audit.needed])
    summary = result(audit)
    texts = [groups.where(summary.differing)] if summary.differing else []
    texts += [summary.failed.reason.text()] if summary.failed and summary.failed.reason else []
    sources = groups.source_lines(summary.differing.sources) if summary.differing else []
    details = [section(Heading(heading), Items(lines)) for heading, lines in summary.details]
    stderr = groups.stderr(summary.failed) if summary.failed else None
    sections: list[Section] = [section(Text([text for text in texts if text]), Items(sources), stderr), *details]
    return next(iter(blocks("why", "Details", [one for one in sections if one])), None)


def _needed(flag: NeededFlag) -> tuple[str, str, Sequence[str]]:
    return flag.flag, flag.title, list(searches.needed_lines(flag))


def parts(audit: Bisection | VariationBisection) -> list[Part]:
    """Return the other parts of the page."""
    summary = result(audit)
    matrix = [Part("trials", "Trials", "matrix.html", _matrix(audit), captions.MATRIX)] if audit.groups else []
    table: Section = [Table(summary.table.columns, summary.table.rows, summary.table.note)]
    notes: Section = [Notes(summary.notes)]
    charts = [*_proof(audit), *_costs(audit), *_times(audit)]
    return [
        *matrix,
        *([Part("evidence", "Evidence and costs", "charts.html", charts)] if charts else []),
        *(blocks("fingerprints", "Fingerprints", [table]) if summary.table.rows else []),
        *(
            blocks("notes", "Other flags" if isinstance(audit, Bisection) else "Notes", [notes])
            if summary.notes
            else []
        ),
    ]


def _matrix(audit: Bisection | VariationBisection) -> Matrix:
    flags = isinstance(audit, Bisection)
    sets = {group.recipe.name: _set(group, flags=flags) for group in audit.groups}
    needed = _found(audit)
    shown = list(
        dict.fromkeys([*sorted(needed), *sorted({flag for trial_flags in sets.values() for flag in trial_flags})])
    )
    return Matrix(
        trials=[
            Trial(
                name=searches.name(group.recipe.name),
                runs=len(group.runs),
                match=searches.match(group),
                mood=MOODS[_mood(group)],
                is_answer=bool(needed) and set(sets[group.recipe.name]) == needed,
            )
            for group in audit.groups
        ],
        rows=[
            (flag, flag in needed, [_cell(flag, sets[group.recipe.name], needed) for group in audit.groups])
            for flag in shown[:MOST_FLAGS]
        ],
        more=captions.more_flags(len(shown) - MOST_FLAGS) if len(shown) > MOST_FLAGS else "",
    )


def _set(group: Group, *, flags: bool) -> Sequence[str]:
    """Return the flags of a trial, or what varied in it."""
    return group.recipe.flags if flags else [one.id for one in group.varied]


def _found(audit: Bisection | VariationBisection) -> set[str]:
    if isinstance(audit, Bisection):
        return {flag for one in audit.needed or () for flag in (one.flag, *one.requires)}
    return {one.variation for one in audit.sensitive_to or ()}


def _cell(flag: str, flags: Sequence[str], needed: set[str]) -> tuple[str, str, str]:
    if flag in flags:
        return "●", "set", captions.SET
    left_out = flag in needed and needed - {flag} <= set(flags)
    return ("○", "out", captions.LEFT_OUT) if left_out else ("·", "mut", captions.NOT_SET)


def _mood(group: Group) -> Mood:
    return searches.match(group).mood or Mood.UNCLEAR


Chart = tuple[str, str, Markup]
"""A heading, what the figure shows, and the figure."""


def _proof(audit: Bisection | VariationBisection) -> list[Chart]:
    evidence = audit.evidence
    if evidence is None or evidence.confidence is None:
        return []
    chart = charts.proof(evidence.runs, evidence.confidence)
    return [(captions.proof_title(evidence.runs), captions.PROOF_ABOUT, chart)]


def _costs(audit: Bisection | VariationBisection) -> list[Chart]:
    needed = audit.needed or () if isinstance(audit, Bisection) else ()
    flags: list[tuple[NeededFlag | Alternative, bool]] = [
        *((one, True) for one in needed),
        *((other, False) for one in needed for other in one.alternatives),
    ]
    known = [
        charts.Cost(one.flag, one.cost, one.cost_range, one.cost_runs[0], is_needed)
        for one, is_needed in flags
        if one.cost is not None and one.cost_range is not None and one.cost_runs is not None
    ]
    return [("What each flag costs", captions.COSTS, charts.costs(known))] if known else []


def _times(audit: Bisection | VariationBisection) -> list[Chart]:
    runs = [
        (searches.name(group.recipe.name), MOODS[_mood(group)], run.wall_s)
        for group in audit.groups
        for run in group.runs
    ]
    return [("Where the time went", captions.TIMES, charts.times(runs))] if len(runs) > 1 else []
