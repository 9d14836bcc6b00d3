"""Curves, steps and weights that differ, read again for a report."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from detaudit.config.options import compiled
from detaudit.errors import AuditNotFoundError, StorageError
from detaudit.model import (
    UNHOOKED,
    Audit,
    Bisection,
    Check,
    Comparison,
    Difference,
    Group,
    Number,
    Report,
    Run,
    RunRecord,
    Stage,
    Training,
    VariationBisection,
    as_number,
    record_of,
    series,
)
from detaudit.model.fact import Number as fact_Number
from detaudit.model.figures import (
    NO_FIGURES,
    Curve,
    Distance,
    Figures,
    GroupFigures,
    Ladder,
    LadderRow,
    Losses,
    LossSamples,
    NoFigure,
    Point,
    Steps,
    WeightCell,
    WeightRow,
    Weights,
)
from detaudit.model.record import WeightSet, WeightValue
from detaudit.model.series import Ints, Rows, Series
from detaudit.runs import printed
from detaudit.runs.log_rows import LoggedLosses
from detaudit.runs.log_rows import Losses as LossArrays
from detaudit.runs.status import logs_of, trained

# Put the steps of a long training into bins, so that a figure of a million steps has a few hundred points.


MOST_BINS = 600
"""Bins of a figure."""

NEAR = 10
"""Steps on both sides of a mark that have a bin each."""

MOST_MARKS = 5


def bins(steps: Sequence[int] | Ints, marks: Iterable[int], most: int = MOST_BINS) -> list[Steps]:
    """Return ascending steps as bins, each as its first and last step.

    No bin holds steps before and after a mark. Around the first marks each step has a bin of its own.
    """
    steps = np.asarray(steps, np.int64)
    starts = _starts(steps, marks, most)
    return list(zip(steps[starts].tolist(), steps[[*starts[1:] - 1, -1]].tolist(), strict=True)) if len(steps) else []


def _starts(steps: Ints, marks: Iterable[int], most: int = MOST_BINS) -> Ints:
    """Return the places at which bins begin."""
    if len(steps) <= most:
        return np.arange(len(steps))
    cuts = sorted(set(marks))
    near = np.unique([step + by for step in cuts[:MOST_MARKS] for by in range(-NEAR, NEAR + 1)])
    alone = np.flatnonzero(np.isin(steps, near))
    size = -(-len(steps) // (most - min(len(near), most // 2)))
    begins = np.unique([0, *alone, *(alone + 1), *np.flatnonzero(np.isin(steps, cuts))])
    ends = [*begins[1:].tolist(), len(steps)]
    return np.concatenate([np.arange(first, end, size) for first, end in zip(begins.tolist(), ends, strict=True)])


# In which stages and steps the runs of a group differ.


MOST_LADDER_COLUMNS = 14
"""Columns."""

MOST_FIRST = 3
"""Places where runs first differ that have columns around them."""

Sides = Mapping[int, Series]
"""The digests of one stage by run."""


def ladder(records: Mapping[int, RunRecord], first: Iterable[Difference], rank: int) -> Ladder | None:
    """Return how many different digests runs, by number, have; ``first`` is where some of them first differ.

    Return None if there are no steps of this rank, or fewer than two runs: one matches nothing.
    """
    parts = {run: record.parts[rank] for run, record in records.items() if rank < len(record.parts)}
    stages = [stage for stage in Stage if stage not in UNHOOKED]
    digests: dict[Stage, Sides] = {
        stage: {run: series.series(part.digests.get(stage, {})) for run, part in parts.items()} for stage in stages
    }
    digests = {stage: sides for stage, sides in digests.items() if any(sides.values())}
    last = max((part.steps for part in parts.values()), default=0)
    if not digests or not last or len(parts) < 2:
        return None
    marks = list(
        dict.fromkeys(
            (one.stage, one.step) for one in first if one.rank == rank and not one.at_end and one.output is None
        )
    )
    recorded = (
        []
        if last > 4 * MOST_LADDER_COLUMNS
        else sorted({step for sides in digests.values() for side in sides.values() for step in side})
    )
    columns = tuple(_columns(recorded, [step for _, step in marks], last, zero=_has(digests, 0)))
    # All stages of a column are counted before the next one: their steps are in the same blocks of an event log.
    counts = [[_count(list(sides.values()), column) for sides in digests.values()] for column in columns]
    return Ladder(
        runs=tuple(parts),
        columns=columns,
        rows=tuple(
            LadderRow(stage=stage, counts=tuple(column[index] for column in counts))
            for index, stage in enumerate(digests)
        ),
        first=tuple(marks),
    )


def _has(digests: Mapping[Stage, Sides], step: int) -> bool:
    return any(step in side for sides in digests.values() for side in sides.values())


def _columns(recorded: Sequence[int], marks: Iterable[int], last: int, *, zero: bool) -> Iterator[Steps]:
    """Yield the steps of each column: all recorded ones if they fit, else the start, those around marks, the end."""
    if recorded and len(recorded) <= MOST_LADDER_COLUMNS:
        yield from ((step, step) for step in recorded)
        return
    firsts = sorted(set(marks))[:MOST_FIRST]
    own_columns = {1, 2, last, *(step + by for step in firsts for by in (-1, 0, 1))} if firsts else {1, 2, 3, last}
    before = -1 if zero else 0
    for step in sorted(step for step in own_columns | ({0} if zero else set()) if before < step <= last):
        if step > before + 1:
            yield before + 1, step - 1
        yield step, step
        before = step


def _any_step(side: Series, number: int, column: Steps) -> bool:
    """Return whether a block has a step of a column. It is read only if it is not wholly inside of it."""
    first, last = column
    contained = first <= number * series.BLOCK and (number + 1) * series.BLOCK - 1 <= last
    return contained or len(_between(side.rows(number), column)) > 0


def _count(sides: Sequence[Series], column: Steps) -> int | None:
    """Return the greatest number of different digests that the runs have at a step of a column.

    Return None if those that are known match, and some are not known: the run was ended, or has no such step.
    """
    first, last = column
    numbers = sorted({number for side in sides for number in side.blocks})
    greatest, known = 0, True
    for number in numbers:
        if number * series.BLOCK > last or (number + 1) * series.BLOCK <= first:
            continue
        different = len({side.blocks.get(number) for side in sides})
        if different == 1:  # all steps of the block match
            greatest = greatest or int(_any_step(sides[0], number, column))
            continue
        if 1 < greatest >= different:  # no step of the block has more digests
            continue
        at_steps = [_between(side.rows(number), column) for side in sides]
        most, same = series.most_different(at_steps)
        known = known and same
        greatest = max(greatest, most)
        if greatest >= len(sides):
            break
    return greatest if greatest > 1 or (greatest and known) else None


def _between(rows: Rows, column: Steps) -> Rows:
    between: Rows = rows[(column[0] <= rows[:, 0]) & (rows[:, 0] <= column[1])]
    return between


# The losses of the runs of a group, as curves, and how far they are from those of the first run.


def losses(records: Mapping[int, RunRecord], rank: int) -> Losses | None:
    """Return the losses of runs, by number, of which the first is the one that the others are compared with.

    They are of this rank, or of the first one that recorded any. Return None if none did.
    """
    recorded_rank = next(
        (recorded_rank for recorded_rank in (rank, *_ranks(records)) if _has_losses(records, recorded_rank)), None
    )
    if recorded_rank is None:
        return None
    same: list[tuple[list[int], LossArrays]] = []
    for run, one in losses_by_run(records, recorded_rank).items():
        runs = next((runs for runs, other in same if _equal(other, one)), None)
        if runs is None:
            same.append(([run], one))
        else:
            runs.append(run)
    steps = series.union([one[0] for _, one in same])
    aligned = [(tuple(runs), _aligned(steps, one)) for runs, one in same]
    reference = aligned[0][1]
    marks = [first for _, one in aligned[1:] if (first := _first_difference(steps, reference, one)) is not None]
    starts = _starts(steps, marks)
    inside = [slice(first, end) for first, end in zip(starts.tolist(), [*starts[1:].tolist(), len(steps)], strict=True)]
    return Losses(
        rank=recorded_rank,
        bins=tuple(bins(steps, marks)),
        curves=tuple(
            Curve(
                runs=runs,
                points=tuple(_point(one, part) for part in inside),
                distances=tuple(_distance(reference, one, part) for part in inside) if one is not reference else (),
            )
            for runs, one in aligned
        ),
        first=min(marks, default=None),
        dtype=_dtype(records, recorded_rank),
    )


def losses_by_run(records: Mapping[int, RunRecord], rank: int) -> dict[int, LossArrays]:
    """Return the losses of this rank by step, of each run that has such a rank."""
    parts = {run: record.parts[rank] for run, record in records.items() if rank < len(record.parts)}
    return {run: _arrays(part.losses) for run, part in parts.items()}


def _arrays(losses: Mapping[int, Number]) -> LossArrays:
    if isinstance(losses, LoggedLosses):
        return losses.arrays()
    steps = sorted(losses)
    numbers = (losses[step] for step in steps)
    return np.array(steps, np.int64), np.array([math.nan if one is None else float(one) for one in numbers])


def _equal(a: LossArrays, b: LossArrays) -> bool:
    return np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1], equal_nan=True)


class _Aligned(NamedTuple):
    """The losses of a run at the steps of all runs, and at which of them it has one."""

    values: NDArray[np.float64]
    known: NDArray[np.bool_]


def _aligned(steps: Ints, losses: LossArrays) -> _Aligned:
    aligned = _Aligned(np.full(len(steps), math.nan), np.zeros(len(steps), bool))
    at = np.searchsorted(steps, losses[0])
    aligned.values[at], aligned.known[at] = losses[1], True
    return aligned


def _ranks(records: Mapping[int, RunRecord]) -> range:
    return range(max((len(record.parts) for record in records.values()), default=0))


def _has_losses(records: Mapping[int, RunRecord], rank: int) -> bool:
    return any(rank < len(record.parts) and record.parts[rank].losses for record in records.values())


def _dtype(records: Mapping[int, RunRecord], rank: int) -> str | None:
    """Return the type of the losses if all runs whose ends are known have the same, None otherwise."""
    ends = [part.final for record in records.values() for part in record.parts[rank : rank + 1]]
    loss_dtypes = {final.loss_dtype for final in ends if final is not None}
    return loss_dtypes.pop() if len(loss_dtypes) == 1 else None


def _differ(a: _Aligned, b: _Aligned, part: slice = slice(None)) -> NDArray[np.bool_]:
    """Return at which steps two runs have different losses."""
    x, y = a.values[part], b.values[part]
    different: NDArray[np.bool_] = a.known[part] & b.known[part] & (x != y) & ~(np.isnan(x) & np.isnan(y))
    return different


def _first_difference(steps: Ints, a: _Aligned, b: _Aligned) -> int | None:
    """Return the first of these ascending steps at which two runs have different losses, None if there is none."""
    differing = _differ(a, b)
    return int(steps[differing.argmax()]) if differing.any() else None


def _point(losses: _Aligned, part: slice) -> Point | None:
    known = losses.values[part][losses.known[part]]
    if not len(known):
        return None
    finite = known[np.isfinite(known)]
    broken = len(finite) < len(known)
    if not len(finite):
        return Point(broken=broken)
    first, last = float(finite[0]), float(finite[-1])
    return Point(first=first, least=float(finite.min()), greatest=float(finite.max()), last=last, broken=broken)


def _distance(a: _Aligned, b: _Aligned, part: slice) -> Distance | None:
    """Return how far two losses are apart at most, None if the runs share none of these steps."""
    if not (a.known[part] & b.known[part]).any():
        return None
    differing = _differ(a, b, part)
    with np.errstate(all="ignore"):
        apart = np.abs(a.values[part][differing] - b.values[part][differing])
    greatest = float(apart.max()) if len(apart) else 0.0
    return Distance(greatest=greatest if math.isfinite(greatest) else None, equal=not len(apart))


# Take samples of the losses of the runs of a group, for programs that draw curves themselves.


MOST_RANKS = 8
"""Ranks of a run whose losses are sampled."""


def samples(records: Mapping[int, RunRecord]) -> tuple[LossSamples, ...]:
    """Return samples of the losses of runs, by number, of which the first is the one that others are compared with.

    A short training has all of its losses. A long one has those around the first differences, and a few hundred more.
    """
    return tuple(one for rank in range(MOST_RANKS) for one in _of_rank(rank, _with_losses(records, rank)))


def _with_losses(records: Mapping[int, RunRecord], rank: int) -> dict[int, LossArrays]:
    return {run: one for run, one in losses_by_run(records, rank).items() if len(one[0])}


def _of_rank(rank: int, sides: Mapping[int, LossArrays]) -> Iterator[LossSamples]:
    if not sides:
        return
    base = next(iter(sides))
    steps = series.union([side[0] for side in sides.values()])
    aligned = {run: _aligned(steps, side) for run, side in sides.items()}
    reference = aligned[base]
    marks = [_first_difference(steps, reference, side) for run, side in aligned.items() if run != base]
    sampled = _starts(steps, [mark for mark in marks if mark is not None])
    for run, side in aligned.items():
        kept = series.union([sampled[side.known[sampled]], np.flatnonzero(side.known)[-1:]])
        with np.errstate(all="ignore"):
            apart = np.abs(reference.values[kept] - side.values[kept]).tolist()
        yield LossSamples(
            run=run,
            rank=rank,
            steps=tuple(steps[kept].tolist()),
            losses=tuple(map(as_number, side.values[kept].tolist())),
            distances=tuple(one if math.isfinite(one) else None for one in apart) if run != base else (),
        )


# Which weights of the runs of a group differ first, and how far.


MOST_ROWS = 24
MOST_COLUMNS = 12

_Column: TypeAlias = int | None
"""A step, or None for the end."""


def weights(records: Mapping[int, RunRecord], rank: int) -> Weights | None:
    """Return which weights of this rank differ between runs, by number; the first one is compared with the others.

    Return None if no weight was listed at the same step by all runs, or if the first run is alone. What is not known of
    all runs counts if it differs.
    """
    sets = [record.parts[rank].weight_sets if rank < len(record.parts) else () for record in records.values()]
    if len(sets) < 2 or not sets[0]:
        return None
    columns: list[_Column] = [*sorted({step for one in sets[0] for step in one.steps}), None]
    rows = [row for row in _rows(sets, columns) if any(row.cells)]
    if not rows:
        return None
    listed = [index for index in range(len(columns)) if any(row.cells[index] for row in rows)]
    differing = sorted([row for row in rows if _first(row) < len(columns)], key=_first)
    first = min(map(_first, differing), default=0)
    shown = _shown(listed, first)
    return Weights(
        runs=tuple(records),
        steps=tuple(columns[index] for index in shown),
        rows=tuple(_cut(row, shown) for row in differing[:MOST_ROWS]),
        differing=len(differing),
        first=sum(_first(row) == first for row in differing),
        count=len(rows),
        listed=tuple(columns[index] for index in listed),
        unlisted=sum(max(0, one.count - len(one.kinds)) for one in sets[0]),
    )


def _rows(sets: Sequence[Sequence[WeightSet]], columns: Sequence[_Column]) -> Iterator[WeightRow]:
    """Yield a row for each weight of the first run; a set of the others counts if its tensors have the same shapes."""
    before = 0
    for number, one in enumerate(sets[0]):
        shapes = [(kind.dtype, kind.shape) for kind in one.kinds]
        same = [
            of_run[number]
            if number < len(of_run) and [(kind.dtype, kind.shape) for kind in of_run[number].kinds] == shapes
            else None
            for of_run in sets
        ]
        values = [[_values(weight_set, column) for weight_set in same] for column in columns]
        for index, kind in enumerate(one.kinds):
            cells = tuple(_cell([of_run[index] if of_run else None for of_run in column]) for column in values)
            yield WeightRow(kind=kind, place=before + index + 1, cells=cells)
        before += one.count


def _values(weight_set: WeightSet | None, column: _Column) -> Sequence[WeightValue]:
    if weight_set is None:
        return ()
    return weight_set.final if column is None else weight_set.steps.get(column, ())


def _cell(values: Sequence[WeightValue | None]) -> WeightCell | None:
    """Return what a cell says of the values of all runs, None if they match as far as they are known, and some are not.

    The first run must have one.
    """
    first, known = values[0], [one for one in values if one]
    if first is None:
        return None
    differing = [total for digest, total in known if digest != first[0]]
    if not differing:
        return WeightCell(digests=1) if len(known) == len(values) else None
    apart = [_apart(first[1], total) for total in differing]
    finite = [one for one in apart if one is not None]
    digests = len({digest for digest, _ in known})
    return WeightCell(digests=digests, apart=max(finite) if len(finite) == len(apart) else None)


def _apart(a: fact_Number, b: fact_Number) -> float | None:
    """Return how far two sums are apart, relative to the larger one; None if one is not finite."""
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return None
    larger = max(abs(a), abs(b))
    return abs(a / larger - b / larger) if larger else 0.0


def _first(row: WeightRow) -> int:
    """Return the first column in which a weight differs, the number of columns if it does in none."""
    differs = (index for index, cell in enumerate(row.cells) if cell is not None and cell.digests > 1)
    return next(differs, len(row.cells))


def _shown(listed: Sequence[int], first: int) -> list[int]:
    """Return the columns that are shown: from the one before the first difference on, and the last."""
    before = [index for index in listed if index < first]
    start = max(0, min(len(before) - 1, len(listed) - MOST_COLUMNS))
    shown = listed[start:]
    return [*shown[: MOST_COLUMNS - 1], shown[-1]] if len(shown) > MOST_COLUMNS else [*shown]


def _cut(row: WeightRow, shown: Sequence[int]) -> WeightRow:
    return WeightRow(kind=row.kind, place=row.place, cells=tuple(row.cells[index] for index in shown))


# Collect the figures of a report from the event logs in its results folder.


MOST_RUNS = 100
"""Runs of a group whose event logs are read."""


def figures(report: Report, folder: Path | None, *, sampled: bool = False) -> Figures:
    """Return the figures of a report in a results folder; a comparison needs none, and a bisection has no figures.

    If they are ``sampled``, each group has samples of its losses too, also those of a bisection.
    """
    if isinstance(report, Comparison):
        return _of_comparison(report)
    if folder is None:
        return NO_FIGURES
    match report:
        case Check():
            audits = ((one.audit, folder / one.name) for one in report.audits)
            return Figures(
                audits=tuple(figures(audit, audit_folder, sampled=sampled) for audit, audit_folder in audits)
            )
        case Bisection() | VariationBisection() if not sampled:
            return NO_FIGURES
        case Bisection() | VariationBisection():
            return Figures(groups=tuple(_of_trial(report, group, folder) for group in report.groups))
        case _:
            return Figures(groups=tuple(_of_group(report, group, folder, sampled) for group in report.groups))


def _of_comparison(report: Comparison) -> Figures:
    rank = next((pair.rank for pair in report.losses if pair.a != pair.b), 0)
    pairs = [pair for pair in report.losses if pair.rank == rank]
    sides = {pair.step: pair.a for pair in pairs}, {pair.step: pair.b for pair in pairs}
    records = {
        number: RunRecord(trainings=(Training(framework="", losses=side),)) for number, side in enumerate(sides, 1)
    }
    return Figures(groups=(GroupFigures(losses=losses(records, 0)),))


def _of_trial(audit: Audit, group: Group, folder: Path) -> GroupFigures:
    records = _records(audit, group, folder)
    return GroupFigures(samples=samples(records) if isinstance(records, dict) else ())


def _of_group(audit: Audit, group: Group, folder: Path, sampled: bool) -> GroupFigures:
    records = _records(audit, group, folder)
    if isinstance(records, NoFigure):
        return GroupFigures(missing=records)
    divergence = group.first_difference
    rank = divergence.rank if divergence is not None else 0
    first = [run.first_difference for run in group.runs if run.first_difference is not None and run.id in records]
    curves = losses(records, rank)
    return GroupFigures(
        ladder=ladder(records, first, rank),
        losses=curves,
        weights=weights(records, rank),
        missing=NoFigure.NO_LOSSES if curves is None else None,
        samples=samples(records) if sampled else (),
    )


def _records(audit: Audit, group: Group, folder: Path) -> dict[int, RunRecord] | NoFigure:
    """Return what runs recorded, as far as that can still be read, or why there is nothing.

    The first one is compared with the others.
    """
    pattern = compiled(audit.loss_pattern) if audit.loss_pattern is not None else None
    runs = [run for run in group.runs if run.counts and run not in group.shorter][:MOST_RUNS]
    base = group.first_finished
    if base is not None and base in runs:
        runs = [base, *(run for run in runs if run is not base)]
    records, why = {}, NoFigure.LOGS_GONE
    for run in runs:
        try:
            logs = logs_of(run, folder)
            parts = (*trained(run, logs), *_printed(run, logs, pattern))
        except (AuditNotFoundError, StorageError):
            continue
        if any(isinstance(part.losses, LoggedLosses) and not part.losses.source.is_there for part in parts):
            why = NoFigure.LOGS_NOT_FETCHED
        elif parts:
            records[run.id] = record_of(parts)
    return records if records and (base is None or base.id in records) else why


def _printed(run: Run, logs: Path, pattern: re.Pattern[str] | None) -> Iterator[Training]:
    """Yield the losses that a run printed, if they were compared."""
    if pattern is not None and any(rank.framework == Stage.STDOUT for rank in run.ranks):
        training = printed.read(logs / "stdout.log", pattern).training
        if training is not None:
            yield training
