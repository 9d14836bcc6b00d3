"""The figures of an audit: a ladder, the weights, the losses and the final losses of each recipe."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from detaudit.model import Verdict
from detaudit.model.figures import Curve, Distance, Ladder, Losses, Point
from detaudit.report.html import groups as views
from detaudit.report.html.charts import losses as loss_charts
from detaudit.report.html.charts import plot, strip
from detaudit.report.html.charts.scale import linear
from detaudit.report.html.group_view import GroupView
from detaudit.report.html.parts import Part
from detaudit.report.html.weights import WeightTable
from detaudit.report.messages import figures, weights
from detaudit.report.messages.wording import brief


def figure_parts(shown: Sequence[GroupView]) -> Iterator[Part]:
    """Yield the parts with figures, and with a line for each one that is missing.

    Nobody asks where runs differ that match.
    """
    differing = [view for view in shown if view.group.verdict is not Verdict.DETERMINISTIC]
    ladders = [Ladders(view, view.figures.ladder) for view in differing if view.figures.ladder]
    if ladders:
        yield Part("ladder", "Where runs first differ", "ladder.html", ladders, figures.LADDER)
    tables = [WeightTable(view.name, view.figures.weights) for view in differing if view.figures.weights]
    if tables:
        yield Part("weights", weights.TITLE, "weights.html", tables, weights.ABOUT)
    missing = list(dict.fromkeys(figures.missing(one) for view in shown if (one := view.figures.missing)))
    curves = [_panel(view, view.figures.losses) for view in shown if view.figures.losses]
    if curves or missing:
        yield Part("losses", "Loss", "losses.html", (curves, missing, figures.LOSSES, figures.DISTANCES))
    strips = _strips(shown)
    if strips:
        whole = all(view.group.through is None for view in shown)
        title = "Final loss of each run" if whole else "Last loss of each run"
        yield Part("final", title, "strip.html", strips, figures.STRIP)


def _panel(view: GroupView, losses: Losses) -> "Panel":
    return Panel(view.name, losses, views.kinds(view.group), views.names_of_results(view.group))


@dataclass(frozen=True)
class Ladders:
    """The ladder of a group."""

    view: GroupView
    ladder: Ladder

    @property
    def sentence(self) -> str:
        """What it shows."""
        return figures.ladder(self.ladder)

    def cell(self, row: int, column: int) -> dict[str, str]:
        """Return the text of a cell, its class, and what it says in words."""
        found, steps = self.ladder.rows[row], self.ladder.columns[column]
        number, runs = found.counts[column], len(self.ladder.runs)
        first = (found.stage, steps[0]) in self.ladder.first and steps[0] == steps[1]
        shade = 0 if number is None or runs < 2 else -(-5 * (number - 1) // (runs - 1))
        kind = "x" if number is None else f"h{shade}" + (" ring" if first else "")
        text = "" if number is None else "·" if number == 1 else str(number)
        return {
            "text": text,
            "kind": kind,
            "tip": f"{figures.steps(steps)}, {found.stage}: {figures.cell(number, runs)}",
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
        return loss_charts.curves(self.losses, self.kinds, self._mark)

    @property
    def distance_chart(self) -> Markup:
        """How far they are apart."""
        return loss_charts.distances(self.losses, self.kinds, self._mark, figures.EQUAL)

    def _name(self, curve: Curve) -> str:
        """Return how a tooltip names a curve."""
        letter = self.names[curve.runs[0]]
        return figures.runs(curve, letter)

    @property
    def _mark(self) -> str:
        return f"step {self.losses.first:,}" if self.losses.first is not None else ""

    @property
    def sentence(self) -> str:
        """What the curves show."""
        return figures.losses(self.losses)

    @property
    def type(self) -> str:
        """The type of the losses."""
        return figures.loss_type(self.losses)

    @property
    def captions(self) -> list[str]:
        """What stands below them."""
        return [line for line in (figures.farthest(self.losses), figures.binned(self.losses)) if line]

    @property
    def key(self) -> list[tuple[str, str]]:
        """The letters of the curves, each with the class that colors it."""
        first = [curve.runs[0] for curve in self.losses.curves[:7]]
        return [(self.names[run], self.kinds[run]) for run in first if self.names[run]]

    def data(self, distances: bool) -> dict[str, Any]:
        """Return the values for the tooltip of a figure."""
        curves = [curve for curve in self.losses.curves if curve.distances or not distances][:7]
        return {
            "steps": [figures.steps(one) for one in self.losses.bins],
            "x": [round(place, 4) for place in plot.places(self.losses.bins)],
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
    return figures.NOT_FINITE if point.broken else f"{point.last:.9g}"


def _distance(found: Distance | None) -> str | None:
    if found is None:
        return None
    return figures.EQUAL if found.equal else figures.NOT_FINITE if found.greatest is None else brief(found.greatest)


def _strips(shown: Sequence[GroupView]) -> dict[str, Any] | None:
    """Return the final losses of each group as dots, None if nothing differs or there are no losses."""
    values = {
        view.name: [
            (float(rank.final_loss), views.kinds(view.group)[run.id])
            for run in view.group.runs
            if run.finished and run not in view.group.shorter
            for rank in run.ranks[:1]
            if isinstance(rank.final_loss, float | int)
        ]
        for view in shown
    }
    every = [value for found in values.values() for value, _ in found]
    if len(set(every)) < 2:
        return None
    scale = linear(every) if min(every) != max(every) else linear([*every, 0.0])
    rows = [
        {
            "name": name,
            "chart": strip.strip(found, scale, f"{name}: {', '.join(brief(value) for value, _ in found)}"),
            "range": figures.between(min(value for value, _ in found), max(value for value, _ in found)),
        }
        for name, found in values.items()
        if found
    ]
    return {"rows": rows, "axis": strip.axis(scale)}
