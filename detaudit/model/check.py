"""The parts of a check with its gates, and of a comparison."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.against import AnyAttribution, AnyDoubt, Change, Parting
from detaudit.model.audit import AppliedRecipe, Audit, Difference, Divergence, Group, NextStep, RankRecord
from detaudit.model.fact import Fact, Number, both, brief, count, digits, every, shortened, union
from detaudit.model.outputs import OutputDifference
from detaudit.model.problems import AnyReason, AnyRunError, errors
from detaudit.model.resume import Checkpoint, Lost
from detaudit.model.stage import NAMED, Explanation, Stage
from detaudit.model.warnings import AnyWarning

# What the comparison of two recordings shows.


class ComparisonVerdict(StrEnum):
    """The result of a comparison."""

    IDENTICAL = "identical"
    DIFFERENT = "different"
    INCONCLUSIVE = "inconclusive"


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

    ``environment`` has what may change results, by name. Of a side that was run for the comparison, ``group`` has its
    runs, ``commit`` is the hash of its commit, and ``changed`` are the files of the working tree that are not as there.
    """

    name: str
    recipe: AppliedRecipe
    ranks: tuple[RankRecord, ...]
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    group: Group | None = None
    commit: str = ""
    changed: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="compare"):
    """Two recordings, compared step by step.

    ``last_equal_step`` is the last step before the first difference that both recorded (a baseline keeps some steps
    only), null if there is none; ``differing_weights`` are tensors of the final weights, of ``weights_compared``;
    ``stages`` were recorded on both sides, at ``steps_compared`` steps; ``through`` is the last step if either
    was ended there. ``open`` is what left the two runs and differs so that nobody can say whether their results do;
    ``output_differences`` are all in what left them, what decides first.

    Of two sides that were run, ``doubts`` say why nothing follows, and ``parting`` is where they part. Of two commits,
    ``code`` are the files that the runs loaded and that differ; of two environments, ``environment_changes`` has all
    packages that differ.
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
    warnings: tuple[AnyWarning, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    doubts: tuple[AnyDoubt, ...] = ()
    code: tuple[str, ...] = ()
    parting: Parting | None = None
    interrupted: bool = False
    started: str = ""
    ended: str = ""

    @property
    def groups(self) -> tuple[Group, ...]:
        """The runs of both sides, none of recordings."""
        return tuple(side.group for side in (self.a, self.b) if side.group is not None)


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
    COMMIT = "same as commit"

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


_MOST_NAMES = 5


def _through(step: int | None) -> str:
    return f" through step {step:,}, the last one compared" if step is not None else ""


def _names(names: Sequence[str]) -> str:
    return both(names) if len(names) <= _MOST_NAMES else shortened(names, most=_MOST_NAMES)


def _results(ranks: Sequence[RankRecord]) -> str:
    several = len(ranks) > 1
    return ", ".join(
        f"{f'rank {rank.rank} ' if several else ''}sum of weights {digits(rank.sum_of_weights)}, "
        f"final loss {digits(rank.final_loss)}"
        for rank in ranks
    )


def _recorded(ranks: Sequence[RankRecord]) -> str:
    first = ranks[0]
    digest, loss = (first.digest or "-")[:12], digits(first.final_loss)
    several = f"; {count(len(ranks), 'rank')}" if len(ranks) > 1 else ""
    return f"digest {digest}, final loss {loss}, {count(first.steps, 'step')}{several}"


class GateDetail(Fact, frozen=True, kw_only=True):
    """What a gate found."""


class RunsMatch(GateDetail, frozen=True, kw_only=True):
    """All runs are bit-identical, through a step if they were ended there."""

    runs: int
    through: int | None = None

    def text(self) -> str:
        return f"{every(self.runs, 'run')} are bit-identical{_through(self.through)}"


class RunsGaveDifferentResults(GateDetail, frozen=True, kw_only=True):
    """The runs differ."""

    runs: int
    distinct_results: int
    first_difference: Divergence | None

    def text(self) -> str:
        results = f"{count(self.runs, 'run')} gave {count(self.distinct_results, 'different result')}"
        first = self.first_difference
        if first is None:
            return results
        return f"{results}; first difference {first.where()}: {first.explanation.text(first.stage)}"


class RunsInconclusive(GateDetail, frozen=True, kw_only=True):
    """The runs are inconclusive."""

    reason: AnyReason | None

    def text(self) -> str:
        return self.reason.text() if self.reason else "nothing to compare"


class RunsDifferedEarlier(GateDetail, frozen=True, kw_only=True):
    """The runs match, and those of an earlier audit of the same code, in ``folder``, differed."""

    runs: int
    folder: str

    def text(self) -> str:
        return (
            f"{every(self.runs, 'run')} are bit-identical, but runs of the same code differed earlier ({self.folder}); "
            "write the baseline all the same with --force"
        )


class NoBaseline(GateDetail, frozen=True, kw_only=True):
    """There is no baseline yet."""

    def text(self) -> str:
        return "no baseline yet; create it with `detaudit check --update`"


class RunsMustMatch(GateDetail, frozen=True, kw_only=True):
    """The gate compares only runs that match each other."""

    def text(self) -> str:
        return "not compared: the runs must match each other first"


class MatchesBaseline(GateDetail, frozen=True, kw_only=True):
    """The runs have the baseline's bits; ``changed`` names what changed in the environment all the same.

    ``through`` is the step through which they were compared, if either was ended there.
    """

    changed: tuple[str, ...] = ()
    through: int | None = None

    def text(self) -> str:
        if not self.changed:
            return f"bit-identical{_through(self.through)}"
        return f"bit-identical{_through(self.through)}, although {_names(self.changed)} changed"


class _Differs(GateDetail, frozen=True, kw_only=True):
    """The runs differ from something; ``last_equal_step`` is null if no step before it was compared.

    ``at_end``: every recorded step matches, and what was left at the end differs. ``site`` is the file or the printed
    line, with the path inside, or the part of a returned value, null of a step.
    """

    step: int | None = None
    stage: Stage | None = None
    rank: int = 0
    last_equal_step: int | None = None
    at_end: bool = False
    site: str | None = None
    explanation: Explanation | None = None

    def _since(self) -> str:
        if self.step is None or self.stage is None:
            return ""
        stage = Stage(self.stage)
        why = f": {self.explanation.text(stage)}" if self.explanation else ""
        if stage in NAMED:
            return f" {stage.where(0, self.site)}{why}" if self.site else why
        if self.at_end and stage in (Stage.UPDATE, Stage.STATE, Stage.OUTPUT):
            return f" at the end{why}"
        rank = f"rank {self.rank}, " if self.rank else ""
        last = f"; last equal: step {self.last_equal_step:,}" if self.last_equal_step is not None else ""
        return f" from {f'step {self.step:,}' if self.step else 'the start'} on ({rank}{stage}{last}){why}"


class DiffersFromBaseline(_Differs, frozen=True, kw_only=True):
    """The runs differ from the baseline.

    ``loss_distance`` is relative to the baseline's final loss, null if the audit has no ``tolerance``. ``told`` is what
    a run of the commit that wrote the baseline says, null if there was none.
    """

    changed: tuple[str, ...] = ()
    tolerance: float | None = None
    loss_distance: Number = None
    told: AnyAttribution | None = None

    def text(self) -> str:
        told = f"; {self.told.text()}" if self.told is not None else ""
        return f"differs from the baseline{self._since()}; {self._changes()}{told}"

    def _changes(self) -> str:
        if not self.changed:
            return "the environment is unchanged"
        names = _names(self.changed)
        if self.tolerance is None:
            return f"{names} changed, which may change results"
        if not isinstance(self.loss_distance, float | int):
            return f"{names} changed, and the final losses cannot be compared"
        distance, tolerance = brief(self.loss_distance), brief(self.tolerance)
        return f"{names} changed, and the final losses differ by {distance} (relative, tolerance {tolerance})"


class SameAsCommit(GateDetail, frozen=True, kw_only=True):
    """The runs have the bits of a commit, through a step if they were ended there."""

    commit: str
    through: int | None = None

    def text(self) -> str:
        return f"bit-identical to {self.commit}{_through(self.through)}"


class DiffersFromCommit(_Differs, frozen=True, kw_only=True):
    """Both sides repeat themselves, and differ; ``code`` are the files that they loaded and that differ."""

    commit: str
    code: tuple[str, ...] = ()

    def text(self) -> str:
        code = f"; code that differs: {_names(self.code)}" if self.code else ""
        return f"differs from {self.commit}{self._since()}{code}"


class CommitInconclusive(GateDetail, frozen=True, kw_only=True):
    """Nothing follows from the runs of a commit and of the working tree."""

    commit: str
    doubts: tuple[AnyDoubt, ...] = ()

    def text(self) -> str:
        return f"not compared with {self.commit}: " + ("; ".join(one.text() for one in self.doubts) or "undecided")


class _Resumed(GateDetail, frozen=True, kw_only=True):
    """A run was stopped after a step of ``steps``, and resumed."""

    stopped_after: int
    steps: int
    resumed_steps: int

    def stopped(self) -> str:
        return (
            f"stopped after step {self.stopped_after:,} of {self.steps:,}, resumed for "
            f"{count(self.resumed_steps, 'step')}"
        )


class ResumeMatches(_Resumed, frozen=True, kw_only=True):
    """The resumed run ended as uninterrupted ones do."""

    def text(self) -> str:
        return f"{self.stopped()}: bit-identical to an uninterrupted run"


class ResumeDiffers(_Resumed, frozen=True, kw_only=True):
    """The resumed run ended with other weights or losses than uninterrupted ones.

    It was resumed without what was ``lost``, from ``checkpoints``.
    """

    uninterrupted: tuple[RankRecord, ...]
    resumed: tuple[RankRecord, ...]
    lost: tuple[Lost, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()

    def text(self) -> str:
        lost = "".join(f"; lost: {one.text()}" for one in self.lost)
        results = f"uninterrupted: {_results(self.uninterrupted)}; resumed: {_results(self.resumed)}"
        return f"{self.stopped()}: the result differs{lost}; {results}"


class StopUnusable(GateDetail, frozen=True, kw_only=True):
    """The run to be stopped failed."""

    errors: tuple[AnyRunError, ...]

    def text(self) -> str:
        return f"the run to be stopped was unusable: {errors(self.errors)}"


class StoppedTooLate(GateDetail, frozen=True, kw_only=True):
    """The run finished all its steps before it could be stopped."""

    steps: int

    def text(self) -> str:
        finished = f"the run finished all {count(self.steps, 'step')} before it could be stopped"
        return f"{finished}: set `stop` to a command that stops early"


class ResumeUnusable(GateDetail, frozen=True, kw_only=True):
    """The resumed run failed."""

    errors: tuple[AnyRunError, ...]

    def text(self) -> str:
        return f"the resumed run was unusable: {errors(self.errors)}"


class StartedOver(GateDetail, frozen=True, kw_only=True):
    """The resumed run trained at least as many steps as an uninterrupted one."""

    resumed_steps: int

    def text(self) -> str:
        trained = f"the resumed run trained {count(self.resumed_steps, 'step')}"
        return f"{trained}, at least as many as an uninterrupted run: it started over"


class NoWeights(GateDetail, frozen=True, kw_only=True):
    """No weights were recorded."""

    def text(self) -> str:
        return "no weights were recorded"


if TYPE_CHECKING:
    AnyGateDetail: TypeAlias = GateDetail
else:
    AnyGateDetail = union(GateDetail)


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate; a ``blocking`` one makes the check fail."""

    name: GateName
    status: GateStatus
    blocking: bool
    detail: AnyGateDetail
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

    def text(self) -> str:
        """Return what changed in a baseline."""
        if self.name:
            return f"{self.audit}: {self.name}: {self.old or 'none'} → {self.new or 'none'}"
        if not self.new_ranks:
            return f"{self.audit}: different steps or stages recorded"
        if not self.old_ranks:
            return f"{self.audit}: new baseline, {_recorded(self.new_ranks)}"
        return f"{self.audit}: {_recorded(self.old_ranks)} → {_recorded(self.new_ranks)}"


class Check(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="check"):
    """A whole check."""

    schema_version: str
    command: tuple[str, ...]
    verdict: CheckVerdict
    audits: tuple[CheckedAudit, ...]
    lock_file: str
    lock_changes: tuple[LockChange, ...] = ()
    warnings: tuple[AnyWarning, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    interrupted: bool = False
    started: str = ""
    ended: str = ""
