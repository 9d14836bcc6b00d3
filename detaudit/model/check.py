"""The parts of a check with its gates, and of a comparison."""

from typing import TypeAlias

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.audit import AppliedRecipe, Audit, Difference, Divergence, NextStep, RankRecord
from detaudit.model.fact import Fact, Number
from detaudit.model.outputs import OutputDifference
from detaudit.model.problems import Reason, RunError
from detaudit.model.stage import Explanation, Stage
from detaudit.model.warnings import Warning

# What the comparison of two recordings shows.


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


# What ``detaudit check`` finds: the gates of each audit that a project defines.


class CheckVerdict(StrEnum):
    """The result of a check; inconclusive if no gate failed, but a blocking one is."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


class GateName(StrEnum):
    """The name of a gate."""

    REPEATABLE = "repeatable"
    BASELINE = "same as baseline"
    RESUME = "same after resume"

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return self.value.rpartition(" ")[2]


class GateStatus(StrEnum):
    """The result of a gate.

    ``incomparable``: the bits differ, and so does the environment. ``inconclusive``: the script failed, nothing was
    recorded, or there is no baseline.
    """

    PASSED = "passed"
    FAILED = "failed"
    INCOMPARABLE = "incomparable"
    INCONCLUSIVE = "inconclusive"


class RunsMatch(Fact, frozen=True, kw_only=True):
    """All runs are bit-identical, through a step if they were ended there."""

    runs: int
    through: int | None = None


class RunsGaveDifferentResults(Fact, frozen=True, kw_only=True):
    """The runs differ."""

    runs: int
    distinct_results: int
    first_difference: Divergence | None


class RunsInconclusive(Fact, frozen=True, kw_only=True):
    """The runs are inconclusive."""

    reason: Reason | None


class RunsDifferedEarlier(Fact, frozen=True, kw_only=True):
    """The runs match, and those of an earlier audit of the same code, in ``folder``, differed."""

    runs: int
    folder: str


class NoBaseline(Fact, frozen=True, kw_only=True):
    """There is no baseline yet."""


class RunsMustMatch(Fact, frozen=True, kw_only=True):
    """The gate compares only runs that match each other."""


class MatchesBaseline(Fact, frozen=True, kw_only=True):
    """The runs have the baseline's bits; ``changed`` names what changed in the environment all the same.

    ``through`` is the step through which they were compared, if either was ended there.
    """

    changed: tuple[str, ...] = ()
    through: int | None = None


class DiffersFromBaseline(Fact, frozen=True, kw_only=True):
    """The runs differ from the baseline; ``last_equal_step`` is null if no step before it was compared.

    ``at_end``: every recorded step matches, and what was left at the end differs. ``site`` is the file or the printed
    line, with the path inside, or the part of a returned value, null of a step.

    ``loss_distance`` is relative to the baseline's final loss, null if the audit has no ``tolerance``.
    """

    step: int | None = None
    stage: Stage | None = None
    rank: int = 0
    last_equal_step: int | None = None
    at_end: bool = False
    site: str | None = None
    explanation: Explanation | None = None
    changed: tuple[str, ...] = ()
    tolerance: float | None = None
    loss_distance: Number = None


class ResumeMatches(Fact, frozen=True, kw_only=True):
    """The resumed run ended as uninterrupted ones do."""

    stopped_after: int
    steps: int
    resumed_steps: int


class ResumeDiffers(Fact, frozen=True, kw_only=True):
    """The resumed run ended with other weights or losses than uninterrupted ones."""

    stopped_after: int
    steps: int
    resumed_steps: int
    uninterrupted: tuple[RankRecord, ...]
    resumed: tuple[RankRecord, ...]


class StopUnusable(Fact, frozen=True, kw_only=True):
    """The run to be stopped failed."""

    errors: tuple[RunError, ...]


class StoppedTooLate(Fact, frozen=True, kw_only=True):
    """The run finished all its steps before it could be stopped."""

    steps: int


class ResumeUnusable(Fact, frozen=True, kw_only=True):
    """The resumed run failed."""

    errors: tuple[RunError, ...]


class StartedOver(Fact, frozen=True, kw_only=True):
    """The resumed run trained at least as many steps as an uninterrupted one."""

    resumed_steps: int


class NoWeights(Fact, frozen=True, kw_only=True):
    """No weights were recorded."""


GateDetail: TypeAlias = (
    RunsMatch
    | RunsGaveDifferentResults
    | RunsInconclusive
    | RunsDifferedEarlier
    | NoBaseline
    | RunsMustMatch
    | MatchesBaseline
    | DiffersFromBaseline
    | ResumeMatches
    | ResumeDiffers
    | StopUnusable
    | StoppedTooLate
    | ResumeUnusable
    | StartedOver
    | NoWeights
)
"""What a gate found."""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate; a ``blocking`` one makes the check fail."""

    name: GateName
    status: GateStatus
    blocking: bool
    detail: GateDetail
    first_difference: Difference | None = None
    environment_changes: tuple[Change, ...] = ()


class CheckedAudit(msgspec.Struct, frozen=True, kw_only=True):
    """A named audit and its gates."""

    name: str
    audit: Audit
    gates: tuple[Gate, ...]


class LockChange(msgspec.Struct, frozen=True, kw_only=True):
    """What changed in a baseline: the results, or a part of its environment by ``name``.

    ``old`` is null for a new baseline; with neither name nor results, other steps or stages are kept.
    """

    audit: str
    name: str = ""
    old: str | None = None
    new: str | None = None
    old_ranks: tuple[RankRecord, ...] = ()
    new_ranks: tuple[RankRecord, ...] = ()


class Check(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="check"):
    """A whole check."""

    schema_version: str
    command: tuple[str, ...]
    verdict: CheckVerdict
    audits: tuple[CheckedAudit, ...]
    lock_file: str
    lock_changes: tuple[LockChange, ...] = ()
    warnings: tuple[Warning, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    interrupted: bool = False
    started: str = ""
    ended: str = ""
