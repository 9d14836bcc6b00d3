"""What the comparison of two recordings shows."""

from enum import StrEnum

import msgspec

from detaudit.model.audit import Difference, NextStep, RankRecord, Recipe
from detaudit.model.enums import Stage
from detaudit.model.number import Number


class Likeness(StrEnum):
    """What a comparison comes to."""

    SAME = "same"
    DIFFERENT = "different"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the environment that is not the same on both sides, null where one side has none."""

    name: str
    a: str | None
    b: str | None


class LossPair(msgspec.Struct, frozen=True, kw_only=True):
    """The losses of both sides at one step of one rank, and how far they are apart, null where one is no number."""

    rank: int
    step: int
    a: Number
    b: Number
    distance: float | None


class WeightPair(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of weights that ended unlike, by its place among the weights of its rank, with both sums."""

    rank: int
    place: int
    dtype: str
    shape: tuple[int, ...]
    a: Number
    b: Number


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared; ``name`` is what it was asked for by, ``command`` what recorded it."""

    name: str
    recipe: Recipe
    ranks: tuple[RankRecord, ...]
    command: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two recordings, compared step by step.

    ``differs`` is the first step and stage that do, ``equal_until`` the last step before it at which both were
    recorded (a baseline keeps some steps only), null where there is none; ``curve`` has the losses; ``weights`` those
    that ended unlike, of ``weights_compared``; ``stages`` are those that were recorded on both sides, at
    ``steps_compared`` steps.
    """

    schema_version: int
    command: tuple[str, ...]
    verdict: Likeness
    a: Side
    b: Side
    environment: tuple[Change, ...] = ()
    differs: Difference | None = None
    equal_until: int | None = None
    cause: str | None = None
    curve: tuple[LossPair, ...] = ()
    weights: tuple[WeightPair, ...] = ()
    weights_compared: int = 0
    stages: tuple[Stage, ...] = ()
    steps_compared: int = 0
    warnings: tuple[str, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
