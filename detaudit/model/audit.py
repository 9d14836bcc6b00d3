"""What an audit is made of; ``Audit`` is also the layout of audit.json."""

from typing import Any

import msgspec

from detaudit.model.enums import NAMED, UNHOOKED, Stage, Status, Verdict
from detaudit.model.number import Number
from detaudit.probe import ProbeDifference

SCHEMA_VERSION = 1
"""Of audit.json: keys only grow; anything else is a new version. 1: first layout."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where one run first differs from another: rank, step (from 1; 0 is before the first), stage.

    ``site`` names the file, and the tensor in it, or the part of what a test returned, that differs.
    """

    rank: int
    step: int
    stage: Stage
    site: str | None = None

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """What differences are sorted by: what a hook saw comes first, then what was printed, then files."""
        return self.stage in UNHOOKED, self.stage in NAMED, self.step, self.stage.place


class RankRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The fingerprints of one training process of a run."""

    rank: int
    framework: str
    steps: int
    sum_of_weights: Number
    final_loss: Number
    digest: str | None
    devices: tuple[str, ...] = ()


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run wrote, compared ``by`` its ``tensors`` or its ``bytes``."""

    path: str
    by: str
    digest: str
    sum_of_weights: Number = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of the script. ``wall_s`` is in seconds; ``differs`` is against the group's first finished run."""

    id: int
    status: Status
    exit_code: int | None
    wall_s: float
    steps: int
    ranks: tuple[RankRecord, ...] = ()
    differs: Difference | None = None
    problem: str | None = None
    stderr_tail: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    logs: str = ""
    artifacts: tuple[Artifact, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it is compared: it finished, or it was ended because it differed already."""
        return self.status is Status.OK or self.differs is not None


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What was held still: a name, the seed, the ids of the flags."""

    name: str
    seed: int
    flags: tuple[str, ...]


class FlagState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a flag, and why.

    ``applied``, ``overridden`` (by the script, afterwards), ``failed``, ``unavailable``, ``not-reached`` (its module
    was never imported).
    """

    id: str
    state: str
    detail: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's code that brings randomness which no seed fixed.

    ``kind`` is ``seed``, ``clock``, ``pid``, ``order``, ``arrival`` or ``other-files`` where runs were seen to differ;
    ``unseeded``, ``unordered`` or ``entropy`` where they must; ``candidate`` where the code alone shows that they may.
    """

    file: str
    line: int
    what: str
    kind: str = ""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A switch or a variable as it stood at the end of a training.

    ``before`` is what a variable was at the ``start`` and at the import of each framework, where that differs.
    """

    name: str
    value: bool | int | str | None
    before: dict[str, str | None] = {}


class Confidence(msgspec.Struct, frozen=True, kw_only=True):
    """n matching runs: at ``level``, the rate of deviating runs is at most ``max_deviation_rate``."""

    level: float
    max_deviation_rate: float


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference between two runs of a group, and what kind of cause it points to."""

    runs: tuple[int, int]
    rank: int
    step: int
    stage: Stage
    site: str | None
    cause: str


class Replicas(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the ranks of a distributed run hold equal weights; ``differs`` is from the first rank, in ``run``."""

    ranks: int
    run: int
    differs: Difference | None


class Varied(msgspec.Struct, frozen=True, kw_only=True):
    """What was not alike in the runs of a group: ``values`` has it in words for each, the control's first."""

    id: str
    values: tuple[str, ...]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """All runs under one recipe. Only runs of one group are ever compared.

    ``generators`` are the random generators that began the training in another state where the runs differ;
    ``not_varied`` says of variations that were asked for why they are not in ``varied``.
    """

    recipe: Recipe
    verdict: Verdict
    distinct: int
    confidence: Confidence | None
    runs: tuple[Run, ...]
    divergence: Divergence | None
    stages: tuple[Stage, ...] = ()
    sparse: bool = False
    replicas: Replicas | None = None
    sources: tuple[Source, ...] = ()
    generators: tuple[str, ...] = ()
    probes: int = 0
    probe: ProbeDifference | None = None
    flags: tuple[FlagState, ...] = ()
    settings: tuple[Setting, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str | None = None
    varied: tuple[Varied, ...] = ()
    not_varied: dict[str, str] = {}

    @property
    def compared(self) -> int:
        """How many of its runs are compared."""
        return sum(run.counts for run in self.runs)

    @property
    def whole(self) -> Run | None:
        """The first run that finished, None where there is none."""
        return next((run for run in self.runs if run.status is Status.OK), None)


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """A command that follows from what was found, and what it is for."""

    command: str
    why: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """One whole audit, as it is kept in audit.json and printed by every reporter.

    ``command`` is what asked for it, ``target`` what it ran, without the interpreter.
    """

    schema_version: int
    command: tuple[str, ...]
    environment: dict[str, Any]
    verdict: Verdict
    groups: tuple[Group, ...]
    warnings: tuple[str, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    interrupted: bool = False
    target: tuple[str, ...] = ()
