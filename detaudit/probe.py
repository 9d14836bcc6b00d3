"""The frozen values of probes in an audit; ``Group`` in model.py holds them."""

import msgspec


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The ``occurrence``-th value of a name that the script monitors, or the gradient that came back; from 1."""

    name: str
    occurrence: int
    step: int | None
    gradient: bool


class ProbeDifference(Probe, frozen=True, kw_only=True):
    """The first probe that differs between two runs, in the order of the first, and the last that agrees before it.

    ``values`` are short texts where a value is one number or string; ``missing`` is the run that has no such probe.
    """

    runs: tuple[int, int]
    rank: int
    values: tuple[str | None, str | None] = (None, None)
    missing: int | None = None
    agrees: Probe | None = None
