"""What one run recorded, in a form that outlives its traces: a baseline, or one side of a comparison."""

import msgspec

from detaudit.model.audit import RankRecord, Recipe
from detaudit.model.enums import Stage
from detaudit.model.number import Number


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of weights as it ended."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    sum: Number


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank trained.

    ``marks[stage][step]`` is the digest of a stage at a step, several of one stage joined by ``"; "``; ``losses`` are
    by step too. In a baseline some steps only are kept.
    """

    record: RankRecord
    sparse: bool = False
    marks: dict[Stage, dict[int, str]] = {}
    losses: dict[int, Number] = {}
    weights: tuple[Weight, ...] = ()


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What one run trained, under which recipe and where: ``environment`` is what bears on its bits, by name."""

    command: tuple[str, ...]
    recipe: Recipe
    environment: dict[str, str]
    ranks: tuple[Trained, ...]
