"""What one run recorded: its trainings, their steps, and their weights."""

import hashlib
from collections.abc import Callable, Mapping, Reversible
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import msgspec

from detaudit.model.audit import AppliedRecipe, RankRecord
from detaudit.model.fact import Number
from detaudit.model.outputs import Outputs
from detaudit.model.stage import UNHOOKED, Stage, is_inference

# The weights of a training one by one, at some of its steps: which of them differs first, and how far.


WeightValue: TypeAlias = tuple[str, Number]
"""The digest of a weight, and the sum of its elements."""


class WeightKind(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of the weights; ``name`` is that in the model that ran when it was first listed, if there was one."""

    dtype: str
    shape: tuple[int, ...]
    name: str | None = None


class WeightSet(msgspec.Struct, frozen=True, kw_only=True):
    """Weights that are updated together, such as by one optimizer.

    ``kinds`` are its first tensors, of ``count``; ``steps`` and ``final`` have the value of each of them. ``final`` is
    empty if the final weights are not known, or are not those of all sets, one after another.
    """

    kinds: tuple[WeightKind, ...]
    count: int
    steps: dict[int, tuple[WeightValue, ...]]
    final: tuple[WeightValue, ...] = ()

    def through(self, step: int) -> "WeightSet":
        """Return what was recorded through this step, as of a run that was ended there."""
        steps = {number: values for number, values in self.steps.items() if number <= step}
        return msgspec.structs.replace(self, steps=steps, final=())


# What one run recorded: the one model that audits, baselines, comparisons and traces compare.


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of the final weights."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    sum: Number


class ModelTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that a model holds: a buffer or a parameter. The digest includes its own name, dtype and shape."""

    name: str
    buffer: bool
    digest: str


class FinalState(msgspec.Struct, frozen=True, kw_only=True):
    """How a training ended: the digest of its weights, null if it had none, and its last loss, with its type.

    ``sum`` is shown and never compared: a device adds up in an order of its own. ``weights`` has the first tensors;
    ``sampled`` says that the weights were too large for a digest at every step. ``state`` has all tensors of all
    models, whether an optimizer updates them or not, sorted by name. ``outputs`` is a digest of what models returned
    after the last update, null if nothing. Of an inference, ``digest`` is of all outputs.
    """

    digest: str | None = None
    sum: Number = None
    loss: Number = None
    loss_dtype: str | None = None
    devices: tuple[str, ...] = ()
    sampled: bool = False
    weights: tuple[Weight, ...] = ()
    state: tuple[ModelTensor, ...] = ()
    outputs: str | None = None

    @property
    def state_digest(self) -> str | None:
        """One digest of the state, None if none was recorded. The names of models do not count."""
        if not self.state:
            return None
        digests = sorted(tensor.digest for tensor in self.state)
        return hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest()


_T = TypeVar("_T")


class _LeftInLog(Protocol):
    def through(self, last: int) -> Any:
        """Return what was recorded through a step."""


def through(last: int, steps: Mapping[int, _T]) -> Mapping[int, _T]:
    """Return what was recorded through the step ``last``. Of what is left in a log, nothing is read for that."""
    if isinstance(steps, dict):
        return {step: value for step, value in steps.items() if step <= last}
    kept: Mapping[int, _T] = cast("_LeftInLog", steps).through(last)
    return kept


def last_step(steps: Mapping[int, object]) -> int:
    """Return the last step, 0 if there is none."""
    return max(steps, default=0) if isinstance(steps, dict) else next(reversed(cast("Reversible[int]", steps)), 0)


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """One training of a run: what one framework did in one process, with steps of its own.

    ``digests[stage][step]`` has the digests of a stage, several if two models have one, as recorded. Step 0 is the
    state before the first step. ``losses`` are by step, the last one recorded comes last. A baseline keeps some
    steps only. What a run shows without a hook has this form too; its framework is the name of the stage. The steps of
    a long training are left in its event log: what is asked for is read there.
    ``unplaced``: chance decided its process, thread or place in the run, so it is matched by what it trained. ``cut``:
    the run was ended after a step, and what this training would have done later is unknown. ``attempt`` is how often
    its launcher had started the ranks before. ``weight_sets`` has the weights one by one, for figures: it is not
    compared, and a baseline has none.
    """

    framework: str
    unplaced: bool = False
    steps: int = 0
    digests: Mapping[Stage, Mapping[int, tuple[str, ...]]] = {}
    losses: Mapping[int, Number] = {}
    final: FinalState | None = None
    cut: bool = False
    attempt: int = 0
    weight_sets: tuple[WeightSet, ...] = ()

    @property
    def is_inference(self) -> bool:
        """Whether models were called and nothing was trained: each step is a call."""
        return is_inference(self.framework)

    @property
    def last_loss(self) -> Number:
        """The final loss, or the last one recorded."""
        if self.final is not None and self.final.loss is not None:
            return self.final.loss
        last = next(reversed(cast("Reversible[int]", self.losses)), None)
        return None if last is None else self.losses[last]

    @property
    def weights_digest(self) -> str | None:
        """The digest of the final weights; if the run was ended early, of the last ones that were recorded."""
        if not self.cut:
            return self.final.digest if self.final else None
        updates = self.digests.get(Stage.UPDATE, {})
        last = updates[last_step(updates)] if updates else ()
        return last[0] if len(last) == 1 else _joined(last)

    @property
    def sampled(self) -> bool:
        """Whether its weights were too large for a digest at every step."""
        if self.cut:
            return 0 < len(self.digests.get(Stage.UPDATE, {})) < self.steps
        return self.final is not None and self.final.sampled

    def through(self, step: int) -> "Training":
        """Return what was recorded through this step, as of a run that was ended there."""
        digests = {stage: through(step, by_step) for stage, by_step in self.digests.items()}
        return msgspec.structs.replace(
            self,
            steps=min(self.steps, step),
            digests={stage: steps for stage, steps in digests.items() if steps},
            losses=through(step, self.losses),
            final=None,
            cut=True,
            weight_sets=tuple(one.through(step) for one in self.weight_sets),
        )

    def fingerprint(self, rank: int) -> RankRecord:
        """Return what a report shows of this training."""
        final = self.final or FinalState()
        return RankRecord(
            rank=rank,
            framework=self.framework,
            steps=self.steps,
            sum_of_weights=final.sum,
            final_loss=self.last_loss,
            loss_dtype=final.loss_dtype,
            digest=self.weights_digest,
            state_digest=final.state_digest,
            output_digest=final.outputs,
            devices=final.devices,
        )


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a run recorded: its trainings, one for each rank, and what it showed without a hook.

    ``outputs`` is all else that left it, None if it was ended early or nothing of that is compared.
    """

    trainings: tuple[Training, ...] = ()
    unhooked: tuple[Training, ...] = ()
    outputs: Outputs | None = None

    @property
    def parts(self) -> tuple[Training, ...]:
        """All of it; the place in this tuple is the rank in reports."""
        return (*self.trainings, *self.unhooked)

    def each(self, change: Callable[[Training], Training]) -> "RunRecord":
        """Return a record in which every part is changed."""
        return msgspec.structs.replace(
            self, trainings=tuple(map(change, self.trainings)), unhooked=tuple(map(change, self.unhooked))
        )

    @property
    def ranks(self) -> tuple[RankRecord, ...]:
        """The fingerprints of all parts."""
        return tuple(part.fingerprint(rank) for rank, part in enumerate(self.parts))

    @property
    def steps(self) -> int:
        """The steps of its longest part."""
        return max((part.steps for part in self.parts), default=0)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of which anything was recorded, in the order of a step, without the hyperparameters."""
        recorded = {stage for part in self.parts for stage in part.digests}
        if any(part.final is not None and part.final.state for part in self.parts):
            recorded.add(Stage.STATE)
        if any(part.final is not None and part.final.outputs for part in self.parts):
            recorded.add(Stage.OUTPUT)
        return tuple(stage for stage in Stage if stage in recorded and stage is not Stage.HYPERPARAMETERS)

    @property
    def sampled(self) -> bool:
        """Whether any weights were too large for a digest at every step."""
        return any(part.sampled for part in self.parts)

    @property
    def has_weights(self) -> bool:
        """Whether the final weights of any part were recorded."""
        return any(part.weights_digest for part in self.parts)

    @property
    def through(self) -> int | None:
        """The step through which it is known if the run was ended there, None if it is known to its end."""
        return max((part.steps for part in self.parts if part.cut), default=None)


def _joined(digests: tuple[str, ...]) -> str | None:
    return hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest() if digests else None


def record_of(parts: tuple[Training, ...], outputs: Outputs | None = None) -> RunRecord:
    """Return a record of these parts: trainings first, then what was shown without a hook."""
    return RunRecord(
        trainings=tuple(part for part in parts if part.framework not in UNHOOKED),
        unhooked=tuple(part for part in parts if part.framework in UNHOOKED),
        outputs=outputs,
    )


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A record that outlives its event logs, with the command, the recipe and the relevant environment, by name."""

    command: tuple[str, ...]
    recipe: AppliedRecipe
    environment: dict[str, str]
    run: RunRecord
