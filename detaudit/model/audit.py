"""The parts of an audit; ``Audit`` is also the layout of audit.json."""

from typing import Any

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.applicability import Inapplicable, NotVaried
from detaudit.model.enums import Across, Stage, Verdict
from detaudit.model.evidence import Confidence, DifferingShare
from detaudit.model.excerpt import Excerpt
from detaudit.model.explanation import Explanation
from detaudit.model.files import LeftState
from detaudit.model.machines import Machine
from detaudit.model.next_steps import NextStep
from detaudit.model.outputs import OutputDifference
from detaudit.model.overrides import Override
from detaudit.model.reasons import Reason
from detaudit.model.run import Difference, Run, shorter
from detaudit.model.sources import Source
from detaudit.model.warnings import Warning  # the term for it
from detaudit.probe import ProbeDifference

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


class FlagState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a flag: why it was not applied, or how the script overrode it."""

    id: str
    state: FlagOutcome
    title: str = ""
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
    also: tuple[int, ...] = ()
    output: OutputDifference | None = None

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


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """All runs with one recipe, the only ones ever compared. ``through`` is how far they went if all were ended early.

    ``differing_generators`` are the random generators that began the training in different states if the runs differ;
    ``not_varied`` says of requested variations why they are not in ``varied``. ``output_differences`` are in what left
    the runs, whether they decide or not; ``outputs_compared`` says that all of that was compared. ``excerpts`` are the
    lines around the first ``sources``; ``differing_share`` is known of ten runs or more. ``machines`` did the runs,
    ``()`` if it was one. ``left_state`` is what runs read of earlier ones.
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
    output_differences: tuple[OutputDifference, ...] = ()
    outputs_compared: bool = False
    through: int | None = None
    planned_runs: int | None = None
    differing_share: DifferingShare | None = None
    excerpts: tuple[Excerpt, ...] = ()
    machines: tuple[Machine, ...] = ()
    left_state: LeftState | None = None

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
    (ISO 8601), ``""`` in a report of an older version. ``across`` is what a difference between machines means.
    ``loss_pattern`` is the regex of --loss-pattern, by which losses are read from the stdout of each run. ``code`` are
    the user's source files that the runs loaded, each with the SHA-256 of its bytes.
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
    started: str = ""
    ended: str = ""
    across: Across = Across.FAIL
    loss_pattern: str | None = None
    code: dict[str, str] = {}
