"""Probes, and how far two tensors are apart."""

from typing import Annotated

import msgspec
from msgspec import Meta

from detaudit.model.fact import Number

# How two tensors of one type and shape differ.


class FirstMismatch(msgspec.Struct, frozen=True, kw_only=True):
    """An element that differs: its index, both values in full, and their bits in hexadecimal."""

    index: tuple[int, ...]
    values: tuple[str, str]
    bits: tuple[str, str]


class TensorGrid(msgspec.Struct, frozen=True, kw_only=True):
    """Where elements of a tensor differ, as a matrix of ``rows`` and ``columns``: the first dimensions, and the others.

    ``counts`` are the elements that differ in each of so many equal parts of its rows, and in those of its columns. Row
    R is in part R * len(counts) // rows, and columns likewise.
    """

    rows: Annotated[int, Meta(ge=1)]
    columns: Annotated[int, Meta(ge=1)]
    counts: tuple[tuple[int, ...], ...]


class TensorDifference(msgspec.Struct, frozen=True, kw_only=True):
    """``mismatched`` of ``total`` elements differ in at least one bit.

    The largest differences among them are absolute, relative to the larger of the two, and in units in the last place;
    null if the type of the elements has no such difference. ``nans`` of them have a NaN on at least one side, and are
    not counted in the differences. ``next`` are the few after the first. ``ulps`` counts the elements by the length in
    bits of their difference in units in the last place: 0 (zeros of both signs), 1, 2 to 3, 4 to 7, and so on.
    ``slices`` counts those that differ in each of so many equal parts of the tensor, in the order of its elements, and
    ``grid`` by their rows and columns, null if it has only one row or column.
    """

    mismatched: int
    total: Annotated[int, Meta(ge=1)]
    max_abs: Number
    max_rel: Number
    max_ulp: int | None
    nans: int
    first: FirstMismatch
    next: tuple[FirstMismatch, ...] = ()
    ulps: tuple[int, ...] = ()
    slices: tuple[int, ...] = ()
    grid: TensorGrid | None = None


# The probes that an audit compares, as parts of a ``Group``.


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The ``occurrence``-th value, or gradient, of a name that the script monitors, counted from 1."""

    name: str
    occurrence: int
    step: int | None
    gradient: bool


class ProbeDifference(Probe, frozen=True, kw_only=True):
    """The first probe that differs between two runs, in the order of the first run, and the last match before it.

    ``values`` are short texts if the values are single numbers or strings. ``missing`` is the run without this probe.
    """

    runs: tuple[int, int]
    rank: int
    values: tuple[str | None, str | None] = (None, None)
    missing: int | None = None
    last_match: Probe | None = None
