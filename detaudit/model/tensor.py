"""How far two tensors of one type and shape are apart."""

import msgspec

from detaudit.model.number import Number


class FirstMismatch(msgspec.Struct, frozen=True, kw_only=True):
    """An element that differs: its index, both values with all their digits, and their bits in hexadecimal."""

    index: tuple[int, ...]
    values: tuple[str, str]
    bits: tuple[str, str]


class TensorDifference(msgspec.Struct, frozen=True, kw_only=True):
    """``mismatched`` of ``total`` elements differ in some bit.

    The largest distances among them are absolute, relative to the larger of the two, and in units in the last place;
    null where the type of the elements has no such distance. ``nans`` of the mismatched have a NaN on one side or on
    both, and are left out of the distances. ``then`` are the next few after the first.
    """

    mismatched: int
    total: int
    max_abs: Number
    max_rel: Number
    max_ulp: int | None
    nans: int
    first: FirstMismatch
    then: tuple[FirstMismatch, ...] = ()
