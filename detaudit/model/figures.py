"""What the figures of a report show. It is read from the event logs when a report is printed, and is not stored."""

from typing import TypeAlias

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.audit import Audit, Group
from detaudit.model.fact import Number
from detaudit.model.record import WeightKind
from detaudit.model.stage import Stage


class NoFigure(StrEnum):
    """Why figures cannot be drawn: the event logs are gone, or were left where workers stored them, or have no loss."""

    LOGS_GONE = "logs-gone"
    LOGS_NOT_FETCHED = "logs-not-fetched"
    NO_LOSSES = "no-losses"


Steps: TypeAlias = tuple[int, int]
"""The first and the last of the steps that a column or a point stands for."""


class LadderRow(msgspec.Struct, frozen=True, kw_only=True):
    """How many different digests of a stage the runs have in each column, None if not all runs recorded one."""

    stage: Stage
    counts: tuple[int | None, ...]


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """In which stages and steps the runs differ.

    ``first`` are the places, stage and step, where a run first differs from the one that it is compared with. A column
    that stands for several steps counts the digests of the step with the most.
    """

    runs: tuple[int, ...]
    columns: tuple[Steps, ...]
    rows: tuple[LadderRow, ...]
    first: tuple[tuple[Stage, int], ...]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The losses of the steps of a bin, None if none of them is finite; ``broken`` says that one is NaN or infinite."""

    first: float | None = None
    least: float | None = None
    greatest: float | None = None
    last: float | None = None
    broken: bool = False


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """How far the losses of a bin are from those of the first run, at most; ``equal`` if all are bit-identical.

    ``greatest`` is None if a loss that differs is NaN or infinite. Steps that only one of the runs has do not count.
    """

    greatest: float | None
    equal: bool = False


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The losses of runs that have the same ones; ``distances`` is empty for the run that others are compared with."""

    runs: tuple[int, ...]
    points: tuple[Point | None, ...]
    distances: tuple[Distance | None, ...] = ()


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """The losses of one rank of the runs of a group.

    ``bins`` are the steps that each point stands for. ``first`` is the first step at which losses differ, None if they
    match as far as runs have the same steps. ``dtype`` is the type of the last loss, None if it is not known.
    """

    rank: int
    bins: tuple[Steps, ...]
    curves: tuple[Curve, ...]
    first: int | None
    dtype: str | None = None


class WeightCell(msgspec.Struct, frozen=True, kw_only=True):
    """How many different digests of a weight the runs have at a step, and how far its sum is from the first run's.

    ``apart`` is the largest distance, relative to the larger of the two sums, of those whose digests differ; None if
    one of the sums is NaN or infinite.
    """

    digests: int
    apart: float | None = 0.0


class WeightRow(msgspec.Struct, frozen=True, kw_only=True):
    """A weight and its place among all of them, from 1; a cell is None if a run did not list it at this step."""

    kind: WeightKind
    place: int
    cells: tuple[WeightCell | None, ...]


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Which weights of the runs differ, those that differ first on top.

    ``steps`` are those of the columns, None for the end of the training; there may be more that were ``listed``. Of
    ``count`` weights ``differing`` ones differ, ``first`` of them at the first step; ``unlisted`` ones are not known.
    """

    runs: tuple[int, ...]
    steps: tuple[int | None, ...]
    rows: tuple[WeightRow, ...]
    differing: int
    first: int
    count: int
    listed: tuple[int | None, ...]
    unlisted: int = 0


class LossSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Losses of one rank of a run as they were recorded, at some of its steps: the first of each bin, and its last.

    ``distances`` are from the losses of the first run at the same steps, None if either run has none or one is not
    finite. They are empty for the first run itself.
    """

    run: int
    rank: int
    steps: tuple[int, ...]
    losses: tuple[Number, ...]
    distances: tuple[float | None, ...] = ()


class GroupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a group, or why there are none. ``samples`` are for those who draw the losses themselves."""

    ladder: Ladder | None = None
    losses: Losses | None = None
    weights: Weights | None = None
    missing: NoFigure | None = None
    samples: tuple[LossSamples, ...] = ()


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a report: of each group of an audit, or of each audit of a check."""

    groups: tuple[GroupFigures, ...] = ()
    audits: tuple["Figures", ...] = ()

    def of(self, audit: Audit, group: Group) -> GroupFigures:
        """Return the figures of a group of an audit."""
        index = audit.groups.index(group)
        return self.groups[index] if index < len(self.groups) else GroupFigures(missing=NoFigure.LOGS_GONE)


NO_FIGURES = Figures()
