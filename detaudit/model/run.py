"""One run of an audit: how it ended, its fingerprints, and where it first differs."""

import math
from collections.abc import Iterable

import msgspec

from detaudit.model.enums import NAMED, UNHOOKED, Stage, Status
from detaudit.model.files import Artifact
from detaudit.model.number import Number
from detaudit.model.outputs import OutputDifference
from detaudit.model.problems import RunError, Unseen
from detaudit.model.warnings import Warning  # the term for it


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where one run first differs from another: rank, step (from 1; 0 is before the first), stage.

    ``site`` names what differs: the tensor of a model, the fit, the file and the tensor in it, or the part of the value
    that a test returned. ``at_end``: every recorded step matches, and what was left at the end differs. ``call``:
    nothing was trained, and the step is a call of a model. ``also`` are the other ranks of the training that first
    differ at this step and stage. ``output`` is what differs in what left the run, if all else matches.
    """

    rank: int
    step: int
    stage: Stage
    site: str | None = None
    at_end: bool = False
    call: bool = False
    also: tuple[int, ...] = ()
    output: OutputDifference | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks that first differ at this step and stage."""
        return tuple(sorted((self.rank, *self.also)))

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
    ends in ``inference``, ``steps`` are calls of models, and ``digest`` is of all that they returned. ``loss_dtype`` is
    the type of the loss, such as ``float32``; null if it was not recorded.
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
    loss_dtype: str | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of the script. ``wall_s`` is in seconds.

    ``through`` is the last step that counts if it was ended there, or had got further by then. ``step_s`` is how long a
    step took, null if too few were seen. ``first_difference`` is from the run ``reference``, null for the group's first
    one; ``errors`` say why the run is not compared, or why it was ended early. ``unseen`` may have trained unrecorded.
    ``result`` is the number of its result among the different ones of its group, in the order in which they came up;
    null if it is not compared. ``log_dir`` has its logs: it is relative to the folder with the audit.json of its audit,
    and absolute in reports of older versions. ``artifacts`` are the files that --artifact names, ``saved`` the others
    that are compared.
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
    result: int | None = None

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
        """Whether it is compared: it finished, was stopped because it already differed, or left another result."""
        return self.finished or self.first_difference is not None or self.result is not None


def shorter(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs that were ended before another of these with which they match as far as they went."""
    matching = [run for run in runs if run.finished and run.first_difference is None]
    furthest = max((math.inf if run.through is None else run.through for run in matching), default=0)
    return tuple(run for run in matching if run.through is not None and run.through < furthest)
