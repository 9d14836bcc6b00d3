"""The probes that an audit compares, as parts of a ``Group``."""

import msgspec


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
