"""Collect the figures of a report from the event logs in its results folder."""

import re
from collections.abc import Iterator
from pathlib import Path

from detaudit.auditor.baseline.load import logs_of, trained
from detaudit.auditor.evidence import printed
from detaudit.auditor.evidence.log_blocks import LoggedLosses
from detaudit.auditor.evidence.logged import Block
from detaudit.auditor.figures.ladder import ladder
from detaudit.auditor.figures.losses import losses
from detaudit.auditor.figures.samples import samples
from detaudit.auditor.figures.weights import weights
from detaudit.errors import AuditNotFoundError, StorageError
from detaudit.model import (
    Audit,
    Bisection,
    Check,
    Comparison,
    Group,
    Report,
    Run,
    RunRecord,
    Stage,
    Training,
    VariationBisection,
    record_of,
)
from detaudit.model.figures import NO_FIGURES, Figures, GroupFigures, NoFigure

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
            return Figures(audits=tuple(figures(audit, place, sampled=sampled) for audit, place in audits))
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
    found = group.first_difference
    rank = found.rank if found is not None else 0
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
    pattern = printed.compiled(audit.loss_pattern) if audit.loss_pattern is not None else None
    runs = [run for run in group.runs if run.counts and run not in group.shorter][:MOST_RUNS]
    base = group.first_finished
    if base is not None and base in runs:
        runs = [base, *(run for run in runs if run is not base)]
    found, why, known = {}, NoFigure.LOGS_GONE, dict[bytes, Block]()
    for run in runs:
        try:
            logs = logs_of(run, folder)
            parts = (*trained(run, logs, known), *_printed(run, logs, pattern))
        except (AuditNotFoundError, StorageError):
            continue
        if any(isinstance(part.losses, LoggedLosses) and not part.losses.log.is_there for part in parts):
            why = NoFigure.LOGS_NOT_FETCHED
        elif parts:
            found[run.id] = record_of(parts)
    return found if found and (base is None or base.id in found) else why


def _printed(run: Run, logs: Path, pattern: re.Pattern[str] | None) -> Iterator[Training]:
    """Yield the losses that a run printed, if they were compared."""
    if pattern is not None and any(rank.framework == Stage.STDOUT for rank in run.ranks):
        found = printed.read(logs / "stdout.log", pattern).training
        if found is not None:
            yield found
