"""What the comparison of two recordings shows."""

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.audit import AppliedRecipe
from detaudit.model.enums import Stage
from detaudit.model.explanation import Explanation
from detaudit.model.next_steps import NextStep
from detaudit.model.number import Number
from detaudit.model.outputs import OutputDifference
from detaudit.model.run import Difference, RankRecord
from detaudit.model.warnings import Warning  # the term for it


class ComparisonVerdict(StrEnum):
    """The result of a comparison."""

    IDENTICAL = "identical"
    DIFFERENT = "different"
    INCONCLUSIVE = "inconclusive"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the environment that differs between two sides, null if one side has none."""

    name: str
    a: str | None
    b: str | None


class LossPair(msgspec.Struct, frozen=True, kw_only=True):
    """The losses of both sides at one step of one rank, and their distance, null if one is not a finite number."""

    rank: int
    step: int
    a: Number
    b: Number
    distance: float | None


class WeightPair(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of the final weights that differs, by its place among the weights of its rank, with both sums."""

    rank: int
    place: int
    dtype: str
    shape: tuple[int, ...]
    a: Number
    b: Number


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared; ``name`` is what was typed for it, ``command`` what recorded it.

    ``environment`` has what may change results, by name.
    """

    name: str
    recipe: AppliedRecipe
    ranks: tuple[RankRecord, ...]
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}


class Comparison(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="compare"):
    """Two recordings, compared step by step.

    ``last_equal_step`` is the last step before the first difference that both recorded (a baseline keeps some steps
    only), null if there is none; ``differing_weights`` are tensors of the final weights, of ``weights_compared``;
    ``stages`` were recorded on both sides, at ``steps_compared`` steps; ``through`` is the last step if either
    was ended there. ``open`` is what left the two runs and differs so that nobody can say whether their results do;
    ``output_differences`` are all in what left them, what decides first.
    """

    schema_version: str
    command: tuple[str, ...]
    verdict: ComparisonVerdict
    a: ComparedSide
    b: ComparedSide
    environment_changes: tuple[Change, ...] = ()
    first_difference: Difference | None = None
    last_equal_step: int | None = None
    explanation: Explanation | None = None
    losses: tuple[LossPair, ...] = ()
    differing_weights: tuple[WeightPair, ...] = ()
    weights_compared: int = 0
    stages: tuple[Stage, ...] = ()
    steps_compared: int = 0
    through: int | None = None
    open: OutputDifference | None = None
    output_differences: tuple[OutputDifference, ...] = ()
    warnings: tuple[Warning, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
