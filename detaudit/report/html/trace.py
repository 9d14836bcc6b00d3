"""The page of a trace: the culprit, how two runs differ there, and how it was found; then the runs, as of an audit."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from detaudit.model import (
    Culprit,
    Edit,
    Excerpt,
    FirstMismatch,
    Operand,
    Operation,
    StepSpread,
    TensorDifference,
    TensorPair,
    Trace,
)
from detaudit.model.difference import tensor_type
from detaudit.model.fact import brief
from detaudit.model.figures import Figures
from detaudit.notebooks.cells import location_of
from detaudit.report import traces
from detaudit.report.document import Code, Notes, Section
from detaudit.report.html import captions, charts, run
from detaudit.report.html.figures import Part, blocks


@dataclass(frozen=True)
class CulpritView:
    """The culprit: its line, what it does, and what fixes it."""

    excerpt: Excerpt | None
    code: str
    location: str
    about: Sequence[str]
    edit: Edit | None
    edit_line: str
    fixes: Sequence[str]
    suspects: Sequence[str]


@dataclass(frozen=True)
class TensorView:
    """The tensor that differs: its numbers, each with what it counts, and the first elements that differ."""

    kind: str
    share: float
    numbers: Sequence[tuple[str, str]]
    elements: Sequence[FirstMismatch]
    lines: Sequence[str]
    ulps: Markup
    where: Markup
    where_about: str
    key: Markup


def why(trace: Trace) -> Part | None:
    """Return the culprit, or what is known without one; None if that is nothing."""
    culprit = trace.culprit
    if culprit is None:
        section: Section = [Code(list(traces.lines(trace)))]
        return blocks("why", "Where runs diverge", [section])[0] if any(traces.lines(trace)) else run.why(trace)
    return Part("why", "The line", "culprit.html", _culprit(culprit))


def _culprit(culprit: Culprit) -> CulpritView:
    return CulpritView(
        excerpt=culprit.excerpt,
        code=culprit.code,
        location=location_of(culprit.file, culprit.line) if culprit.file else "",
        about=list(traces.about(culprit)),
        edit=traces.helpful_edit(culprit),
        edit_line=traces.edit_line(culprit),
        fixes=list(traces.fixes(culprit)),
        suspects=list(traces.suspects(culprit)),
    )


def parts(trace: Trace, trace_figures: Figures) -> list[Part]:
    """Return the other parts of the page."""
    operation = trace.culprit.operation if trace.culprit is not None else None
    tensor = operation.tensor if operation is not None else None
    differs = [Part("tensor", "How the two runs differ there", "tensor.html", _tensor(tensor))] if tensor else []
    taken = _operands(operation) if operation is not None else []
    operands = [Part("operands", "What goes in and what comes out", "operands.html", taken)] if taken else []
    replayed = list(traces.replay_lines(operation))
    repeats = blocks("replay", "What the operation does by itself", [[Code(replayed)]]) if replayed else []
    notes: Section = [Notes(traces.notes(trace))]
    return [
        *repeats,
        *operands,
        *differs,
        *_spread(trace.spread),
        *blocks("passes", "How it was found", [notes]),
        *run.parts(trace, trace_figures),
    ]


def _spread(spreads: Sequence[StepSpread]) -> list[Part]:
    """Return the part with how a difference spreads by step, none if that is not known."""
    rows = [
        (
            f"{one.step:,}",
            charts.bar(one.differing / one.operations),
            captions.spread(one),
            f"{one.absorbing:,}",
            captions.losses_apart(one.losses),
        )
        for one in spreads
    ]
    return [Part("spread", "How the difference spreads", "spread.html", rows, captions.SPREAD)] if rows else []


def _operands(operation: Operation) -> list[tuple[str, str, Operand]]:
    """Return the name and the kind of each tensor that the operation takes and returns."""
    sides = (("input", operation.inputs), ("output", operation.outputs))
    return [
        (f"{side} {number}", tensor_type(one.dtype, one.shape) if one.dtype else "", one)
        for side, operands in sides
        for number, one in enumerate(operands, 1)
    ]


def _where(differs: TensorDifference) -> tuple[Markup, str, Markup]:
    """Return in which part of a tensor elements differ, what is drawn, and its key; nothing if that is not known."""
    if differs.grid is not None and any(differs.grid.counts):
        return charts.matrix(differs.grid), captions.matrix_about(differs.grid), charts.key()
    return (
        charts.where(differs.slices, differs.total) if len(differs.slices) > 1 else Markup(),
        captions.WHERE,
        Markup(),
    )


def _tensor(pair: TensorPair) -> TensorView:
    differs = pair.difference
    where, about, key = _where(differs)
    numbers = [(f"{differs.mismatched / differs.total:.1%}", captions.mismatched(differs.mismatched, differs.total))]
    if differs.max_ulp is not None:
        numbers.append((f"{differs.max_ulp:,}", captions.MOST_ULP))
    if differs.max_abs is not None:
        numbers += [(brief(differs.max_abs), captions.MOST_ABSOLUTE), (brief(differs.max_rel), captions.MOST_RELATIVE)]
    if differs.nans:
        numbers.append((f"{differs.nans:,}", captions.NANS))
    return TensorView(
        kind=tensor_type(pair.dtype, pair.shape),
        share=differs.mismatched / differs.total,
        numbers=numbers,
        elements=[differs.first, *differs.next],
        ulps=charts.ulps(differs.ulps, differs.total - differs.mismatched) if differs.ulps else Markup(),
        where=where,
        where_about=about,
        key=key,
        lines=[f"both saved in {pair.saved_to}"] if pair.saved_to else [],
    )
