"""The figures of groups, and their tables."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from detaudit.model import Group, RankRecord, Run, Verdict, digits
from detaudit.model.fact import brief, count, duration
from detaudit.model.figures import Curve, Distance, GroupFigures, Ladder, Losses, Point, WeightCell, WeightRow, Weights
from detaudit.model.stage import STATUSES
from detaudit.report import groups
from detaudit.report.document import PART, RANK, Answer, Mood, Section, Stderr, Table
from detaudit.report.groups import ordered, results
from detaudit.report.html import captions, charts
from detaudit.report.html.charts import linear
from detaudit.report.sections import mood

# What a page shows of the runs of one recipe.


LETTERS = "ABCDEFG"
MOST_RUNS = 12
"""Runs that have a row each; of more, each result has one."""

MOST_RESULTS = 12


@dataclass(frozen=True)
class Digits:
    """A number: the digits that all runs share, and the others."""

    shared: str
    own: str


@dataclass(frozen=True)
class Row:
    """A run, or the runs with one result: ``kind`` is the class that colors it, ``where`` its first difference."""

    name: str
    run: int
    letter: str
    kind: str
    digest: str
    total: Digits
    loss: Digits
    steps: str
    time: str
    where: str
    mood: str
    result: int | None


def letters(group: Group) -> dict[int, str]:
    """Return the letters of the results of a group, by number: A is that of the first run, then the most frequent."""
    return dict(zip(ordered(group), LETTERS, strict=False))


def kinds(group: Group) -> dict[int, str]:
    """Return the classes that color the runs."""
    names, numbers = letters(group), results(group)
    return {run: f"k-{names.get(number, 'X')}" if number is not None else "k-X" for run, number in numbers.items()}


def rows(group: Group) -> list[Row]:
    """Return a row for each run of a group."""
    shown = {run.id: _rank(group, run) for run in group.runs}
    names, numbers = letters(group), results(group)
    known = [rank for rank in shown.values() if rank is not None]
    totals = _shared([digits(rank.sum_of_weights) for rank in known])
    losses = _shared([digits(rank.final_loss) for rank in known])
    base = group.first_finished.id if group.first_finished else 0
    table_rows = []
    for run in group.runs:
        rank, number = shown[run.id], numbers[run.id]
        where, mood = _where(group, run, base, number)
        table_rows.append(
            Row(
                name=str(run.id),
                run=run.id,
                letter=names.get(number, "") if number is not None else "",
                kind=kinds(group)[run.id],
                digest="-" if run in group.shorter else groups.short_digest(rank),
                total=_split(digits(rank.sum_of_weights) if rank else "-", totals),
                loss=_split(digits(rank.final_loss) if rank and run not in group.shorter else "-", losses),
                steps=f"{run.steps:,}",
                time=duration(run.wall_s),
                where=where,
                mood=mood,
                result=number,
            )
        )
    return table_rows


def by_result(run_rows: Sequence[Row]) -> list[Row]:
    """Return a row for each result, the most frequent first, and one for each run without a result."""
    rows_by_result: dict[int, list[Row]] = {}
    for row in run_rows:
        if row.result is not None:
            rows_by_result.setdefault(row.result, []).append(row)
    alone = [row for row in run_rows if row.result is None]
    total = len(run_rows)
    merged = [
        _merged(rows, f"{len(rows):,} of {count(total, 'run')} ({len(rows) / total:.0%})")
        for rows in sorted(rows_by_result.values(), key=lambda rows: -len(rows))
    ]
    return [*merged, *alone]


def _merged(rows: Sequence[Row], name: str) -> Row:
    first = rows[0]
    return Row(**{**first.__dict__, "name": name})


def _rank(group: Group, run: Run) -> RankRecord | None:
    """Return the rank whose numbers are shown: the one that differs first, else the first."""
    rank_number = group.first_difference.rank if group.first_difference else 0
    return next((rank for rank in run.ranks if rank.rank == rank_number), next(iter(run.ranks), None))


def _where(group: Group, run: Run, base: int, number: int | None) -> tuple[str, str]:
    """Return where a run first differs, and the class that colors it."""
    if run in group.shorter or (not run.finished and run.first_difference is None):
        return STATUSES[run.status], "unk"
    if run.first_difference is not None:
        return run.first_difference.cell(), "diff"
    if run.id == base:
        return captions.REFERENCE if len(group.runs) > 1 else "", "mut"
    same = number is not None and number == results(group).get(base)
    return (captions.matches(run.reference or base), "same") if same else ("", "mut")


def _shared(texts: Sequence[str]) -> str:
    """Return the digits that several numbers begin with; none if all are the same."""
    if len(set(texts)) < 2:
        return ""
    low, high = min(texts), max(texts)
    return low[
        : next((index for index, pair in enumerate(zip(low, high, strict=False)) if len(set(pair)) > 1), len(low))
    ]


def _split(text: str, shared: str) -> Digits:
    return Digits(shared, text[len(shared) :]) if shared and text.startswith(shared) else Digits("", text)


def names_of_results(group: Group) -> Mapping[int, str]:
    """Return how a tooltip names the runs."""
    numbers = results(group)
    names = letters(group)
    return {run: names.get(number, "") if number is not None else "" for run, number in numbers.items()}


# The parts of a page: each has a heading, and a template that draws its data.


MOODS = {Mood.GOOD: "same", Mood.BAD: "diff", Mood.UNCLEAR: "unk"}
"""The classes that color what has a mood."""


@dataclass(frozen=True)
class Part:
    """A part of a page: ``template`` draws ``data``, below the heading ``title`` and what it is ``about``.

    A ``folded`` one shows its heading until it is opened.
    """

    id: str
    title: str
    template: str
    data: Any
    about: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A whole page; ``headline`` is the answer in one sentence, ``lede`` what it rests on.

    The ``overview`` follows, then ``why`` it is so, beside the next steps. ``links`` are the navigation.
    """

    kind: str
    title: str
    headline: str
    mood: str
    facts: Sequence[str]
    lede: Sequence[str]
    parts: Sequence[Part]
    warnings: Sequence[str] = ()
    interrupted: str = ""
    next_steps: Sequence[tuple[str, str]] = ()
    environment: Sequence[tuple[str, str]] = ()
    command: str = ""
    overview: Part | None = None
    why: Part | None = None
    links: Sequence[tuple[str, str]] = ()


def blocks(name: str, title: str, sections: Sequence[Section]) -> list[Part]:
    """Return a part that shows sections of a report as they are; none if there are none."""
    return [Part(name, title, "blocks.html", sections)] if any(sections) else []


# The runs of a recipe, as a page shows them.


@dataclass(frozen=True)
class GroupView:
    """The runs of a recipe, as the page shows them."""

    group: Group
    figures: GroupFigures

    @property
    def name(self) -> str:
        """The recipe."""
        return self.group.recipe.name

    @property
    def summary(self) -> str:
        """What the recipe sets."""
        return groups.recipe_summary(self.group.recipe).partition(": ")[2]

    @property
    def mood(self) -> str:
        """The class that colors the verdict."""
        return MOODS[mood(self.group.verdict)]

    @property
    def answer(self) -> Answer:
        """The verdict in words."""
        group = self.group
        return Answer(
            groups.verdict(group), mood(group.verdict), groups.verdict_sentence(group), groups.evidence_line(group)
        )

    @property
    def evidence(self) -> str:
        """What the verdict rests on."""
        return captions.PROOF if self.group.verdict is Verdict.NONDETERMINISTIC else self.answer.evidence

    @property
    def rows(self) -> list[Row]:
        """A row for each run, or for each result if there are many runs."""
        all_rows = rows(self.group)
        return all_rows if len(all_rows) <= MOST_RUNS else by_result(all_rows)[:MOST_RESULTS]

    @property
    def more(self) -> str:
        """How many results have no row."""
        more = self.group.distinct_results - MOST_RESULTS
        return captions.more_results(more) if len(self.group.runs) > MOST_RUNS and more > 0 else ""

    @property
    def table(self) -> Table | None:
        """All runs and ranks, if a row for each of them is not shown already."""
        table = groups.runs_table(self.group)
        hidden = len(self.group.runs) > MOST_RUNS or not {RANK, PART}.isdisjoint(table.columns)
        return table if hidden and table.rows else None

    @property
    def machines(self) -> Table | None:
        """The machines that did the runs, if there were several."""
        return groups.machines_table(self.group)

    @property
    def between_machines(self) -> list[str]:
        """In what the machines differ."""
        return groups.machine_differences(self.group.machines)

    @property
    def stderr(self) -> Stderr | None:
        """The last lines of the first run that failed."""
        return groups.stderr(self.group)

    @property
    def notes(self) -> list[str]:
        """What was compared, and what became of the flags."""
        return groups.notes(self.group)

    @property
    def where(self) -> str:
        """Where runs first differ, in few words."""
        first_difference = self.group.first_difference
        return first_difference.difference.cell() if first_difference else ""

    @property
    def seconds(self) -> float:
        """How long a run takes."""
        times = sorted(run.wall_s for run in self.group.runs if run.finished)
        return times[len(times) // 2] if times else 0.0


# Which weights of the runs of a recipe differ, as a table of weights and steps.


@dataclass(frozen=True)
class WeightTable:
    """The weights that differ between the runs of a recipe."""

    name: str
    weights: Weights

    @property
    def sentence(self) -> str:
        """What it shows."""
        return captions.weights_sentence(self.weights)

    @property
    def left_out(self) -> list[str]:
        """What it does not show."""
        return captions.weights_left_out(self.weights)

    @property
    def columns(self) -> list[str]:
        """The heads of its columns."""
        return [captions.WEIGHTS_END if step is None else f"{step:,}" for step in self.weights.steps]

    @property
    def rows(self) -> list[tuple[str, str, list[dict[str, str]]]]:
        """The name of each weight, its type and shape, and its cells: what they show, their class, their words."""
        return [
            (captions.weight_name(row), captions.weight_kind(row), [*self._cells(row)]) for row in self.weights.rows
        ]

    def _cells(self, row: WeightRow) -> Iterator[dict[str, str]]:
        for step, cell in zip(self.weights.steps, row.cells, strict=True):
            words = captions.weight_cell(cell, len(self.weights.runs))
            tip = f"{captions.weight_name(row)}, {captions.column_title(step)}: {words}"
            yield {"text": _text(cell), "kind": _shade(cell), "tip": tip, "words": words}


def _text(cell: WeightCell | None) -> str:
    if cell is None or cell.digests == 1:
        return "" if cell is None else "·"
    return "!" if cell.apart is None else f"{_power(cell.apart)}" if cell.apart else "≠"


def _shade(cell: WeightCell | None) -> str:
    """Return the class that colors a cell, from a rounding to sums that have nothing in common."""
    if cell is None or cell.digests == 1:
        return "x" if cell is None else "h0"
    return f"h{5 if cell.apart is None else max(1, min(5, (_power(cell.apart) + 11) // 2)) if cell.apart else 1}"


def _power(apart: float) -> int:
    return math.floor(math.log10(apart))


# The figures of an audit: a ladder, the weights, the losses and the final losses of each recipe.


def figure_parts(shown: Sequence[GroupView]) -> Iterator[Part]:
    """Yield the parts with figures, and with a line for each one that is missing.

    Nobody asks where runs differ that match.
    """
    differing = [view for view in shown if view.group.verdict is not Verdict.DETERMINISTIC]
    ladders = [Ladders(view, view.figures.ladder) for view in differing if view.figures.ladder]
    if ladders:
        yield Part("ladder", "Where runs first differ", "ladder.html", ladders, captions.LADDER)
    tables = [WeightTable(view.name, view.figures.weights) for view in differing if view.figures.weights]
    if tables:
        yield Part("weights", captions.WEIGHTS_TITLE, "weights.html", tables, captions.WEIGHTS_ABOUT)
    missing = list(dict.fromkeys(captions.missing(one) for view in shown if (one := view.figures.missing)))
    curves = [_panel(view, view.figures.losses) for view in shown if view.figures.losses]
    if curves or missing:
        yield Part("losses", "Loss", "losses.html", (curves, missing, captions.LOSSES, captions.DISTANCES))
    strips = _strips(shown)
    if strips:
        complete = all(view.group.through is None for view in shown)
        title = "Final loss of each run" if complete else "Last loss of each run"
        yield Part("final", title, "strip.html", strips, captions.STRIP)


def _panel(view: GroupView, losses: Losses) -> "Panel":
    return Panel(view.name, losses, kinds(view.group), names_of_results(view.group))


@dataclass(frozen=True)
class Ladders:
    """The ladder of a group."""

    view: GroupView
    ladder: Ladder

    @property
    def sentence(self) -> str:
        """What it shows."""
        return captions.ladder(self.ladder)

    def cell(self, row: int, column: int) -> dict[str, str]:
        """Return the text of a cell, its class, and what it says in words."""
        stage_row, steps = self.ladder.rows[row], self.ladder.columns[column]
        number, runs = stage_row.counts[column], len(self.ladder.runs)
        first = (stage_row.stage, steps[0]) in self.ladder.first and steps[0] == steps[1]
        shade = 0 if number is None or runs < 2 else -(-5 * (number - 1) // (runs - 1))
        kind = "x" if number is None else f"h{shade}" + (" ring" if first else "")
        text = "" if number is None else "·" if number == 1 else str(number)
        return {
            "text": text,
            "kind": kind,
            "tip": f"{captions.steps(steps)}, {stage_row.stage}: {captions.cell(number, runs)}",
        }


@dataclass(frozen=True)
class Panel:
    """Losses; ``kinds`` has the class that colors the curve of each run, ``names`` its letter."""

    name: str
    losses: Losses
    kinds: Mapping[int, str]
    names: Mapping[int, str]

    @property
    def loss_chart(self) -> Markup:
        """The losses by step."""
        return charts.curves(self.losses, self.kinds, self._mark)

    @property
    def distance_chart(self) -> Markup:
        """How far they are apart."""
        return charts.distances(self.losses, self.kinds, self._mark, captions.EQUAL)

    def _name(self, curve: Curve) -> str:
        """Return how a tooltip names a curve."""
        letter = self.names[curve.runs[0]]
        return captions.runs(curve, letter)

    @property
    def _mark(self) -> str:
        return f"step {self.losses.first:,}" if self.losses.first is not None else ""

    @property
    def sentence(self) -> str:
        """What the curves show."""
        return captions.losses(self.losses)

    @property
    def type(self) -> str:
        """The type of the losses."""
        return captions.loss_type(self.losses)

    @property
    def captions(self) -> list[str]:
        """What stands below them."""
        return [line for line in (captions.farthest(self.losses), captions.binned(self.losses)) if line]

    @property
    def key(self) -> list[tuple[str, str]]:
        """The letters of the curves, each with the class that colors it."""
        first = [curve.runs[0] for curve in self.losses.curves[:7]]
        return [(self.names[run], self.kinds[run]) for run in first if self.names[run]]

    def data(self, distances: bool) -> dict[str, Any]:
        """Return the values for the tooltip of a figure."""
        curves = [curve for curve in self.losses.curves if curve.distances or not distances][:7]
        return {
            "steps": [captions.steps(one) for one in self.losses.bins],
            "x": [round(position, 4) for position in charts.mark_places(self.losses.bins)],
            "series": [
                {
                    "name": self._name(curve),
                    "k": self.kinds[curve.runs[0]],
                    "v": [_distance(one) for one in curve.distances]
                    if distances
                    else [_value(p) for p in curve.points],
                }
                for curve in curves
            ],
        }


def _value(point: Point | None) -> str | None:
    if point is None:
        return None
    return captions.NOT_FINITE if point.broken else f"{point.last:.9g}"


def _distance(distance: Distance | None) -> str | None:
    if distance is None:
        return None
    return (
        captions.EQUAL
        if distance.equal
        else captions.NOT_FINITE
        if distance.greatest is None
        else brief(distance.greatest)
    )


def _strips(shown: Sequence[GroupView]) -> dict[str, Any] | None:
    """Return the final losses of each group as dots, None if nothing differs or there are no losses."""
    values = {
        view.name: [
            (float(rank.final_loss), kinds(view.group)[run.id])
            for run in view.group.runs
            if run.finished and run not in view.group.shorter
            for rank in run.ranks[:1]
            if isinstance(rank.final_loss, float | int)
        ]
        for view in shown
    }
    every = [value for dots in values.values() for value, _ in dots]
    if len(set(every)) < 2:
        return None
    scale = linear(every) if min(every) != max(every) else linear([*every, 0.0])
    rows = [
        {
            "name": name,
            "chart": charts.strip(dots, scale, f"{name}: {', '.join(brief(value) for value, _ in dots)}"),
            "range": captions.between(min(value for value, _ in dots), max(value for value, _ in dots)),
        }
        for name, dots in values.items()
        if dots
    ]
    return {"rows": rows, "axis": charts.axis(scale)}
