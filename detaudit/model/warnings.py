"""What casts doubt on a result."""

from typing import TypeAlias

from detaudit.model.fact import Fact
from detaudit.model.files import LeftState
from detaudit.model.problems import OutputsOpen, RunError
from detaudit.model.sources import Inapplicable, Override
from detaudit.model.stage import ArchiveFlaw, Stage


class _Warning(Fact, frozen=True, kw_only=True):
    """A warning, and what it is about: an audit of a check, a recipe, a run, or a recording by its name."""

    audit: str = ""
    recipe: str = ""
    run: int = 0
    recording: str = ""


class FlagOverridden(_Warning, frozen=True, kw_only=True):
    """A flag was applied, and the script undid it in a way that casts doubt on the recipe."""

    flag: str
    override: Override


class FlagNotApplied(_Warning, frozen=True, kw_only=True):
    """A flag failed, or is unavailable here."""

    flag: str
    reason: Inapplicable | None


class VariationFailed(_Warning, frozen=True, kw_only=True):
    """A variation did not come about in the process."""

    variation: str
    detail: str


class SetTooLate(_Warning, frozen=True, kw_only=True):
    """The script sets a variable after it was read: by Python at its start, or by ``module`` at its import."""

    variable: str
    file: str
    line: int
    module: str = ""


class SettingsDiffer(_Warning, frozen=True, kw_only=True):
    """A run had other settings than the first: ``settings`` are name, value and the first run's value."""

    first: int
    settings: tuple[tuple[str, str, str], ...]
    more: int = 0


class SlotsDiffer(_Warning, frozen=True, kw_only=True):
    """Of runs at once, those in the same slot match, and those in different ``slots`` differ."""

    slots: int


class RecorderFailed(_Warning, frozen=True, kw_only=True):
    """The recorder failed somewhere; the script did not notice."""

    where: str
    error: str


class ProcessesKilled(_Warning, frozen=True, kw_only=True):
    """Processes that the run left behind were killed."""

    commands: tuple[str, ...]


class RanksRestarted(_Warning, frozen=True, kw_only=True):
    """A launcher started its ranks again, and only what they trained after the last time is compared."""

    times: int


class ArtifactsSkipped(_Warning, frozen=True, kw_only=True):
    """Files that match --artifact were not written by the run, and are not compared; ``more`` are not listed."""

    files: tuple[str, ...]
    more: int = 0


class LeftoverFilesRead(_Warning, frozen=True, kw_only=True):
    """A run read files that an earlier run wrote; ``more`` are not listed. They may be ``isolated`` all the same."""

    files: tuple[str, ...]
    more: int = 0
    isolated: bool = False


class StateChecked(_Warning, frozen=True, kw_only=True):
    """Runs read what earlier ones had left, and one more without it showed whether that matters."""

    state: LeftState


class LeftoversUnchecked(_Warning, frozen=True, kw_only=True):
    """Nobody can say whether runs read each other's files: inotify is unavailable, or they were started ``apart``."""

    apart: bool = False


class FilesUnsearched(_Warning, frozen=True, kw_only=True):
    """The search for files that runs write and read stopped after ``limit`` entries below ``folder``."""

    folder: str
    limit: int


class ArchiveFlawed(_Warning, frozen=True, kw_only=True):
    """An archive of a run was left out."""

    archive: str
    flaw: ArchiveFlaw


class ArchivesOfOtherPlans(_Warning, frozen=True, kw_only=True):
    """Archives of other plans were left out; ``more`` are not listed."""

    archives: tuple[str, ...]
    more: int = 0


class RunStoredTwice(_Warning, frozen=True, kw_only=True):
    """Of two archives of one run, ``counted`` counts; the other is a copy of it, or another attempt."""

    archive: str
    counted: str
    is_copy: bool


class RunsFailAlike(_Warning, frozen=True, kw_only=True):
    """Two runs failed in the same way, so that no more were started."""

    runs: tuple[int, int]


class RunsLeftNothing(_Warning, frozen=True, kw_only=True):
    """Two runs recorded nothing, wrote no file and printed nothing, so that no more were started."""

    runs: tuple[int, int]


class AuditStopped(_Warning, frozen=True, kw_only=True):
    """The audit ended before its last run; ``message`` and ``hint`` are the error's."""

    message: str
    hint: str


class OutputsUndecided(_Warning, frozen=True, kw_only=True):
    """With the flags of an answer the trainings match, and nobody can say whether the results do."""

    reason: OutputsOpen


class InstrumentedRunUnusable(_Warning, frozen=True, kw_only=True):
    """A run that recorded operations or lines failed."""

    level: str
    errors: tuple[RunError, ...]


class BaselineNotWritten(_Warning, frozen=True, kw_only=True):
    """No baseline was written because the runs were not shown to match."""


class BaselineWithoutAudit(_Warning, frozen=True, kw_only=True):
    """The lock file has a baseline of this name, and the project has no such audit any more."""


class SameRecording(_Warning, frozen=True, kw_only=True):
    """Both recordings are one and the same."""


class RecipesDiffer(_Warning, frozen=True, kw_only=True):
    """The recordings were made with different recipes."""

    a: str
    b: str


class RanksDiffer(_Warning, frozen=True, kw_only=True):
    """The recordings have different numbers of ranks."""

    a: int
    b: int


class FrameworksDiffer(_Warning, frozen=True, kw_only=True):
    """A rank trained with different frameworks, whose digests never match."""

    rank: int
    a: str
    b: str


class TensorCountsDiffer(_Warning, frozen=True, kw_only=True):
    """A rank has different numbers of tensors of weights."""

    rank: int
    a: int
    b: int


class TensorLayoutsDiffer(_Warning, frozen=True, kw_only=True):
    """A tensor of weights has different types or shapes; ``a`` and ``b`` are (dtype, shape)."""

    rank: int
    place: int
    a: tuple[str, tuple[int, ...]]
    b: tuple[str, tuple[int, ...]]


class StagesNotShared(_Warning, frozen=True, kw_only=True):
    """Only one recording has these stages, so they were not compared."""

    stages: tuple[Stage, ...]


class PartNotShared(_Warning, frozen=True, kw_only=True):
    """Only one recording has printed losses, or files, so they were not compared."""

    part: Stage


class WeightsSampled(_Warning, frozen=True, kw_only=True):
    """The weights were too large for a digest at every step."""


class RunsDiffer(_Warning, frozen=True, kw_only=True):
    """The runs of a recording differ from each other; only the first finished one is compared."""


class PrintedLossesSkipped(_Warning, frozen=True, kw_only=True):
    """The printed losses of a recording were not compared, because no --loss-pattern was given."""


_OfFiles: TypeAlias = ArtifactsSkipped | LeftoverFilesRead | StateChecked | LeftoversUnchecked | FilesUnsearched
_OfArchives: TypeAlias = ArchiveFlawed | ArchivesOfOtherPlans | RunStoredTwice
_OfRanks: TypeAlias = RanksRestarted | RanksDiffer | FrameworksDiffer | TensorCountsDiffer | TensorLayoutsDiffer
Warning: TypeAlias = (  # the term for it, in the report and here
    FlagOverridden
    | FlagNotApplied
    | VariationFailed
    | SetTooLate
    | SettingsDiffer
    | SlotsDiffer
    | RecorderFailed
    | ProcessesKilled
    | _OfFiles
    | _OfArchives
    | RunsFailAlike
    | RunsLeftNothing
    | AuditStopped
    | OutputsUndecided
    | InstrumentedRunUnusable
    | BaselineNotWritten
    | BaselineWithoutAudit
    | SameRecording
    | RecipesDiffer
    | _OfRanks
    | StagesNotShared
    | PartNotShared
    | WeightsSampled
    | RunsDiffer
    | PrintedLossesSkipped
)
