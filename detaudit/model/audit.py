"""The parts of an audit; ``Audit`` is also the layout of audit.json."""

from typing import Any

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.applicability import Inapplicable, NotVaried
from detaudit.model.enums import NAMED, UNHOOKED, Stage, Status, Verdict
from detaudit.model.evidence import Confidence
from detaudit.model.explanation import Explanation
from detaudit.model.files import Artifact, FileDifference, PrintedDifference
from detaudit.model.next_steps import NextStep
from detaudit.model.number import Number
from detaudit.model.overrides import Override
from detaudit.model.problems import Reason, RunError, Unseen
from detaudit.model.sources import Source
from detaudit.model.warnings import Warning  # the term for it
from detaudit.probe import ProbeDifference

SCHEMA_VERSION = "1.1"
"""Of all reports: a new key raises the second number, any other change the first. 1.0: first published layout.

1.1: runs that are ended after a step.
"""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where one run first differs from another: rank, step (from 1; 0 is before the first), stage.

    ``site`` names what differs: the tensor of a model, the fit, the file and the tensor in it, or the part of the value
    that a test returned. ``at_end``: every recorded step matches, and what was left at the end differs. ``call``:
    nothing was trained, and the step is a call of a model.
    """

    rank: int
    step: int
    stage: Stage
    site: str | None = None
    at_end: bool = False
    call: bool = False

    @property
    def of_fit(self) -> bool:
        """Whether it is of a fit: the batches and the weights of other trainings have no name."""
        return self.site is not None and self.stage in (Stage.BATCH, Stage.UPDATE)

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """The sort key: hooked stages first, then printed losses, then files."""
        return self.stage in UNHOOKED, self.stage in NAMED, self.step, self.stage.place


class RankRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The fingerprints of one training process of a run.

    ``digest`` is of the weights that were trained, ``state_digest`` of all that the models hold, buffers too, and
    ``output_digest`` of what models returned after the last update. If nothing was trained, the name of the framework
    ends in ``inference``, ``steps`` are calls of models, and ``digest`` is of all that they returned.
    """

    rank: int
    framework: str
    steps: int
    sum_of_weights: Number
    final_loss: Number
    digest: str | None
    state_digest: str | None = None
    output_digest: str | None = None
    devices: tuple[str, ...] = ()


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of the script. ``wall_s`` is in seconds.

    ``through`` is the last step that counts if it was ended there, or had got further by then. ``step_s`` is how long a
    step took, null if too few were seen. ``first_difference`` is from the run ``reference``, null for the group's first
    one; ``errors`` say why the run is not compared, or why it was ended early. ``unseen`` may have trained unrecorded.
    ``log_dir`` has its logs. ``artifacts`` are the files that --artifact names, ``saved`` the others with tensors.
    """

    id: int
    status: Status
    exit_code: int | None
    wall_s: float
    steps: int
    ranks: tuple[RankRecord, ...] = ()
    first_difference: Difference | None = None
    errors: tuple[RunError, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    stderr_tail: tuple[str, ...] = ()
    warnings: tuple[Warning, ...] = ()
    log_dir: str = ""
    artifacts: tuple[Artifact, ...] = ()
    saved: tuple[Artifact, ...] = ()
    through: int | None = None
    step_s: float | None = None
    reference: int | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of its weights, of one rank after another."""
        return tuple(device for rank in self.ranks for device in rank.devices)

    @property
    def has_weights(self) -> bool:
        """Whether the final weights of any rank were recorded."""
        return any(rank.digest for rank in self.ranks)

    @property
    def finished(self) -> bool:
        """Whether it did all that was wanted of it."""
        return self.status in (Status.OK, Status.ENDED)

    @property
    def counts(self) -> bool:
        """Whether it is compared: it finished, or was stopped because it already differed."""
        return self.finished or self.first_difference is not None


class AppliedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """What was set: the recipe's name, its seed, the ids of its flags."""

    name: str
    seed: int
    flags: tuple[str, ...]


class FlagOutcome(StrEnum):
    """What became of a flag; ``NOT_IMPORTED``: the module that it sets was never imported."""

    APPLIED = "applied"
    OVERRIDDEN = "overridden"
    NOT_IMPORTED = "not-imported"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


class FlagState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a flag: why it was not applied, or how the script overrode it."""

    id: str
    state: FlagOutcome
    reason: Inapplicable | None = None
    override: Override | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting or a variable at the end of a training.

    ``before`` has its value at the ``start`` and at the import of each framework, if that differs.
    """

    name: str
    value: bool | int | str | None
    before: dict[str, str | None] = {}


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference between two runs of a group, and what it points to."""

    runs: tuple[int, int]
    rank: int
    step: int
    stage: Stage
    site: str | None
    explanation: Explanation
    at_end: bool = False
    call: bool = False

    @property
    def difference(self) -> Difference:
        """Where the two runs first differ."""
        return Difference(
            rank=self.rank, step=self.step, stage=self.stage, site=self.site, at_end=self.at_end, call=self.call
        )


class Replicas(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the ranks of a distributed run hold identical weights; a difference is from rank 0, in ``run``."""

    ranks: int
    run: int
    first_difference: Difference | None


class Varied(msgspec.Struct, frozen=True, kw_only=True):
    """What differed between the environments of a group's runs: ``values`` has its value in each, the control first."""

    id: str
    values: tuple[str, ...]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """All runs with one recipe, the only ones ever compared. ``through`` is how far they went if all were ended early.

    ``differing_generators`` are the random generators that began the training in different states if the runs differ;
    ``not_varied`` says of requested variations why they are not in ``varied``. ``file_differences`` and
    ``printed_difference`` do not decide.
    """

    recipe: AppliedRecipe
    verdict: Verdict
    distinct_results: int
    confidence: Confidence | None
    runs: tuple[Run, ...]
    first_difference: Divergence | None
    stages: tuple[Stage, ...] = ()
    weights_sampled: bool = False
    replicas: Replicas | None = None
    sources: tuple[Source, ...] = ()
    differing_generators: tuple[str, ...] = ()
    probe_count: int = 0
    first_probe_difference: ProbeDifference | None = None
    flags: tuple[FlagState, ...] = ()
    settings: tuple[Setting, ...] = ()
    warnings: tuple[Warning, ...] = ()
    reason: Reason | None = None
    varied: tuple[Varied, ...] = ()
    not_varied: dict[str, NotVaried] = {}
    file_differences: tuple[FileDifference, ...] = ()
    printed_difference: PrintedDifference | None = None
    through: int | None = None

    @property
    def compared(self) -> int:
        """The number of runs that are compared."""
        return sum(run.counts for run in self.runs)

    @property
    def first_finished(self) -> Run | None:
        """The first run that finished, None if there is none."""
        return next((run for run in self.runs if run.finished), None)


class Audit(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """One whole audit, as it is kept in audit.json and printed by every reporter.

    ``command`` is what was typed, ``target`` what it ran, without the interpreter.
    """

    schema_version: str
    command: tuple[str, ...]
    environment: dict[str, Any]
    verdict: Verdict
    groups: tuple[Group, ...]
    warnings: tuple[Warning, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    interrupted: bool = False
    target: tuple[str, ...] = ()
