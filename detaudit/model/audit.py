"""Run, Group, Audit, Diagnosis: the parts of an audit, and the layout of audit.json."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.difference import ProbeDifference
from detaudit.model.evidence import Confidence, DifferingShare
from detaudit.model.fact import Fact, Number, both, shortened, union
from detaudit.model.files import Artifact, LeftState
from detaudit.model.outputs import OutputDifference
from detaudit.model.problems import AnyReason, AnyRunError, Unseen
from detaudit.model.sources import AnyInapplicable, AnyNotVaried, Excerpt, Override, Source
from detaudit.model.stage import NAMED, UNHOOKED, Across, Explanation, Stage, Status, Verdict
from detaudit.model.warnings import AnyWarning

# The machines that did the runs of a group, if there were several.


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, as long as it did not restart.

    ``id`` counts from 1, ``host`` is what it calls itself. Machines of the same ``kind`` are alike in all that may
    change bits. ``runs`` are those that it did, ``results`` the numbers of their different results. ``facts`` are those
    in which the machines differ.
    """

    id: int
    host: str
    kind: int
    runs: tuple[int, ...]
    results: tuple[int, ...]
    facts: dict[str, str] = {}


# What to type next.


class Purpose(StrEnum):
    """What a next step is for."""

    READ_STDERR = "read-stderr"
    USE_TRAINING_PYTHON = "use-training-python"
    COMPARE_ARTIFACT = "compare-artifact"
    COUNT_ALL = "count-all"
    COUNT_CLOCK = "count-clock"
    ISOLATE = "isolate"
    FIX = "fix"
    APPLY_FIX = "apply-fix"
    UNDO_FIX = "undo-fix"
    FIND_RANK = "find-rank"
    TRY_RECIPES = "try-recipes"
    TRY_RECIPE = "try-recipe"
    BISECT = "bisect"
    TRACE = "trace"
    FIND_VARIATIONS = "find-variations"
    USE_IN_CI = "use-in-ci"
    VARY = "vary"
    PRINT_AGAIN = "print-again"
    RESUME = "resume"
    AUDIT_WITH_RECIPE = "audit-with-recipe"
    AUDIT_WITH_FLAGS = "audit-with-flags"
    CHECK_FLAG = "check-flag"
    FIX_CONTROL = "fix-control"
    COMPARE_STEPS = "compare-steps"
    ACCEPT_BASELINE = "accept-baseline"
    CREATE_BASELINE = "create-baseline"
    PRINT_ALL_LOSSES = "print-all-losses"
    TRACE_CODES = "trace-codes"
    TRACE_ENVIRONMENTS = "trace-environments"


_PURPOSES = {
    Purpose.READ_STDERR: "full stderr of run {run}",
    Purpose.USE_TRAINING_PYTHON: "use your training's Python",
    Purpose.COMPARE_ARTIFACT: "or compare a file the script writes",
    Purpose.COUNT_ALL: "count what may be a result as one",
    Purpose.COUNT_CLOCK: "was it measured? a clock that counts its readings measures the same in every run",
    Purpose.FIX: "find the edits that fix it, each tried before it is advised",
    Purpose.APPLY_FIX: "make these changes",
    Purpose.UNDO_FIX: "take these changes back",
    Purpose.ISOLATE: "give each run its own copy of the folder, so that all start from the same state",
    Purpose.FIND_RANK: "ranks combine their gradients: record those of each, to find the rank that differs first",
    Purpose.TRY_RECIPES: "is seeding enough, or does it take recipe all?",
    Purpose.TRY_RECIPE: "is this recipe enough?",
    Purpose.BISECT: "find a minimal set of flags that fixes it",
    Purpose.TRACE: "find the line where the runs diverge",
    Purpose.FIND_VARIATIONS: "find the variations that change the result",
    Purpose.VARY: "it reads listings, hashes, addresses or the clock: does the result depend on them?",
    Purpose.USE_IN_CI: "use in CI: exits 0 as long as it stays deterministic",
    Purpose.PRINT_AGAIN: "print this report again",
    Purpose.RESUME: "resume this bisection",
    Purpose.AUDIT_WITH_RECIPE: "audit again with the recipe found",
    Purpose.AUDIT_WITH_FLAGS: "audit again with these flags",
    Purpose.CHECK_FLAG: "check that this flag fixes it",
    Purpose.FIX_CONTROL: "find the flags that fix it while nothing varies",
    Purpose.COMPARE_STEPS: "compare it with the baseline step by step",
    Purpose.ACCEPT_BASELINE: "accept the new result as the baseline",
    Purpose.CREATE_BASELINE: "create the baseline, then commit it",
    Purpose.TRACE_CODES: "find the operation and the line where the two codes part",
    Purpose.TRACE_ENVIRONMENTS: "find the first operation that differs, and the package it belongs to",
    Purpose.PRINT_ALL_LOSSES: "print the losses at every step, and all weights that differ",
}


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """A command that follows from what was found, and what it is for: which ``run``, or which ``audit`` of a check."""

    command: str
    purpose: Purpose
    run: int | None = None
    audit: str = ""

    def comment(self) -> str:
        """Return what the command is for."""
        about = f"{self.audit}: " if self.audit else ""
        return about + _PURPOSES[self.purpose].format(run=self.run)


# One run of an audit: how it ended, its fingerprints, and where it first differs.


_MOST_RANKS = 8


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
        return self.stage in UNHOOKED, self.stage in NAMED, self.step, self.stage.position

    def where(self) -> str:
        """Return ``at step 1 (batch)``, or in which file, with the values of what left two runs."""
        if self.output is not None:
            return self.output.in_file()
        return self.stage.where(self.step, self.site, call=self.call, at_end=self.at_end)

    def cell(self) -> str:
        """Return where it is for a cell of a table."""
        if self.output is not None:
            return self.output.cell()
        if self.stage is Stage.ARTIFACT and self.site:
            return self.site
        if self.stage is Stage.RETURNED:
            return f"returned{' ' if self.site else ''}{self.site or ''}"
        after = "after " if self.at_end and self.stage is Stage.OUTPUT else ""
        return f"{after}{'call' if self.call else 'step'} {self.step:,}, {self.stage}"

    def rank_text(self) -> str:
        """Return ``rank 3``, or ``ranks 0 and 2`` if several first differ at the same step and stage."""
        if not self.also:
            return f"rank {self.rank}"
        names = [f"{rank:,}" for rank in self.ranks]
        return f"ranks {both(names) if len(names) <= _MOST_RANKS else shortened(names, most=_MOST_RANKS)}"


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
    null if it is not compared. ``log_dir`` has its logs: it is relative to the folder with the audit.json of its audit.
    ``artifacts`` are the files that --artifact names, ``saved`` the others that are compared.
    """

    id: int
    status: Status
    exit_code: int | None
    wall_s: float
    steps: int
    ranks: tuple[RankRecord, ...] = ()
    first_difference: Difference | None = None
    errors: tuple[AnyRunError, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    stderr_tail: tuple[str, ...] = ()
    warnings: tuple[AnyWarning, ...] = ()
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
    def is_whole(self) -> bool:
        """Whether it went to its end, and did steps."""
        return self.status is Status.OK and self.through is None and self.steps > 0

    @property
    def counts(self) -> bool:
        """Whether it is compared: it finished, was stopped because it already differed, or left another result."""
        return self.finished or self.first_difference is not None or self.result is not None


def shorter(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs that were ended before another of these with which they match as far as they went."""
    matching = [run for run in runs if run.finished and run.first_difference is None]
    furthest = max((math.inf if run.through is None else run.through for run in matching), default=0)
    return tuple(run for run in matching if run.through is not None and run.through < furthest)


# The parts of an audit; ``Audit`` is also the layout of audit.json.


SCHEMA_VERSION = "2.0"
"""Of all reports: a new key raises the second number, any other change the first.

2.0: what differs in what left the runs. Earlier layouts were never released.
"""


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


FLAG_OUTCOMES = {
    FlagOutcome.APPLIED: "applied",
    FlagOutcome.OVERRIDDEN: "overridden by the script",
    FlagOutcome.NOT_IMPORTED: "skipped (not imported)",
    FlagOutcome.UNAVAILABLE: "unavailable",
    FlagOutcome.FAILED: "failed",
}
"""What became of a flag, in words."""


class FlagState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a flag: why it was not applied, or how the script overrode it."""

    id: str
    state: FlagOutcome
    title: str = ""
    reason: AnyInapplicable | None = None
    override: Override | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting or a variable at the end of a training.

    ``before`` has its value at the ``start`` and at the import of each framework, if that differs.
    """

    name: str
    value: bool | int | str | None
    before: dict[str, str | None] = {}


class Divergence(Difference, frozen=True, kw_only=True):
    """The first difference between two runs of a group, and what it points to."""

    runs: tuple[int, int]
    explanation: Explanation

    @property
    def difference(self) -> Difference:
        """Where the two runs first differ."""
        return Difference(
            rank=self.rank,
            step=self.step,
            stage=self.stage,
            site=self.site,
            at_end=self.at_end,
            call=self.call,
            also=self.also,
            output=self.output,
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


class EarlierRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of an earlier audit of the same training, of which ``differing`` have another result than most."""

    folder: str
    runs: int
    differing: int = 0


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """All runs with one recipe, the only ones ever compared. ``through`` is how far they went if all were ended early.

    ``differing_generators`` are the random generators that began the training in different states if the runs differ;
    ``not_varied`` says of requested variations why they are not in ``varied``. ``output_differences`` are in what left
    the runs, whether they decide or not; ``outputs_compared`` says that all of that was compared. ``excerpts`` are the
    lines around the first ``sources``; ``differing_share`` is known of ten runs or more. ``machines`` did the runs,
    ``()`` if it was one. ``left_state`` is what runs read of earlier ones. ``earlier`` are the runs of earlier audits
    that count: they match these, or differ among themselves.
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
    warnings: tuple[AnyWarning, ...] = ()
    reason: AnyReason | None = None
    varied: tuple[Varied, ...] = ()
    not_varied: dict[str, AnyNotVaried] = {}
    output_differences: tuple[OutputDifference, ...] = ()
    outputs_compared: bool = False
    through: int | None = None
    planned_runs: int | None = None
    differing_share: DifferingShare | None = None
    excerpts: tuple[Excerpt, ...] = ()
    machines: tuple[Machine, ...] = ()
    left_state: LeftState | None = None
    earlier: tuple[EarlierRuns, ...] = ()

    @property
    def shorter(self) -> tuple[Run, ...]:
        """The runs that were ended before others; they are compared as far as they went."""
        return shorter(self.runs)

    @property
    def compared(self) -> int:
        """The number of runs that are compared, without those that were ended before others."""
        return sum(run.counts for run in self.runs) - len(self.shorter)

    @property
    def first_finished(self) -> Run | None:
        """The first run of those that finished and got furthest, None if there is none."""
        return next((run for run in self.runs if run.finished and run not in self.shorter), None)


class Audit(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """One whole audit, as it is kept in audit.json and printed by every reporter.

    ``command`` is what was typed, ``target`` what it ran, without the interpreter. ``started`` and ``ended`` are in UTC
    (ISO 8601). ``across`` is what a difference between machines means.
    ``loss_pattern`` is the regex of --loss-pattern, by which losses are read from the stdout of each run. ``code`` are
    the user's source files that the runs loaded, each with the SHA-256 of its bytes, ``data`` the other files that they
    read, null if that is not known. ``installed`` is a digest of the packages that are installed for the runs, null if
    unknown. ``options`` say how runs were started and compared, where that is not as by default.
    """

    schema_version: str
    command: tuple[str, ...]
    environment: dict[str, Any]
    verdict: Verdict
    groups: tuple[Group, ...]
    warnings: tuple[AnyWarning, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    interrupted: bool = False
    target: tuple[str, ...] = ()
    started: str = ""
    ended: str = ""
    across: Across = Across.FAIL
    loss_pattern: str | None = None
    code: dict[str, str] = {}
    data: dict[str, str] | None = None
    installed: str | None = None
    options: dict[str, Any] | None = None


# What ``detaudit doctor`` finds on a machine.


class Risk(Fact, frozen=True, kw_only=True):
    """Why runs may differ on a machine."""

    def fix(self) -> str:
        """Return what to do about it."""
        raise NotImplementedError


class VariablesUnset(Risk, frozen=True, kw_only=True):
    """Variables that must be set before Python starts are not set; the flag ``flag`` sets them."""

    variables: tuple[str, ...]
    flag: str
    title: str
    by_hand: str

    def text(self) -> str:
        return f"{both(self.variables)} {'is' if len(self.variables) == 1 else 'are'} not set"

    def fix(self) -> str:
        return f"fix: {self.by_hand}, or use --flag {self.flag}"


class RandomAddresses(Risk, frozen=True, kw_only=True):
    """Memory addresses change in every process; ``flag`` prevents that."""

    flag: str
    title: str
    by_hand: str

    def text(self) -> str:
        return "memory addresses change in every process (ASLR)"

    def fix(self) -> str:
        return f"fix: {self.by_hand}, or use --flag {self.flag}"


class RetiredSetting(Risk, frozen=True, kw_only=True):
    """A variable is set that no longer helps, and why; ``replacement`` is what helps today."""

    variable: str
    value: str
    why: str
    replacement: str

    def text(self) -> str:
        return f"{self.variable}={self.value} is set, but {self.why}"

    def fix(self) -> str:
        if not self.replacement:
            return "Unset it."
        return f"Use --flag {self.replacement} instead."


class ThreadsFollowMachine(Risk, frozen=True, kw_only=True):
    """Libraries use as many threads as there are processors."""

    cpus: int

    def text(self) -> str:
        return (
            f"the number of threads follows the number of processors ({self.cpus:,} here), so sums may round "
            "differently on another machine"
        )

    def fix(self) -> str:
        return "Set the same number on every machine: OMP_NUM_THREADS=2 python train.py"


if TYPE_CHECKING:
    AnyRisk: TypeAlias = Risk
else:
    AnyRisk = union(Risk)


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="doctor"):
    """A machine: everything on it that affects determinism, by name, and its risks."""

    schema_version: str
    python: str
    environment: dict[str, Any]
    relevant: dict[str, str]
    risks: tuple[AnyRisk, ...]
