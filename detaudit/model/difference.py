"""Probes, and how far two tensors are apart."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from detaudit.model.fact import Number, brief, count

# How two tensors of one type and shape differ.


class FirstMismatch(msgspec.Struct, frozen=True, kw_only=True):
    """An element that differs: its index, both values in full, and their bits in hexadecimal."""

    index: tuple[int, ...]
    values: tuple[str, str]
    bits: tuple[str, str]

    def text(self) -> str:
        """Return both values with their bits."""
        pairs = zip(self.values, self.bits, strict=True)
        return " vs ".join(f"{value} ({bits})" if value else bits for value, bits in pairs)


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

    def lines(self) -> list[str]:
        """Return how many elements differ, the first of them, and how far apart they are."""
        at = f" at {list(self.first.index)}" if self.first.index else ""
        elements = f"{self.mismatched:,} of {count(self.total, 'element')}"
        verb = "differs" if self.mismatched == 1 else "differ"
        share = f"{elements} {verb} ({self.mismatched / self.total:.1%})"
        text = [f"{share}, first{at}: {self.first.text()}"]
        if self.next:
            text.append(f"next: {', '.join(str(list(one.index)) for one in self.next)}")
        if self.max_abs is not None:
            ulp = "" if self.max_ulp is None else f", {self.max_ulp:,} ulp"
            text.append(f"largest difference: {brief(self.max_abs)} (relative {brief(self.max_rel)}{ulp})")
        if self.nans:
            text.append(f"{count(self.nans, 'element')} with NaN on at least one side, not counted in the difference")
        return text


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


def tensor_type(dtype: str, shape: Sequence[int]) -> str:
    """Return the type and the shape of a tensor."""
    return f"{dtype}, shape {list(shape)}" if shape else dtype
