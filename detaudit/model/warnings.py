"""What casts doubt on a result."""

from typing import TYPE_CHECKING, TypeAlias

from detaudit.model.difference import tensor_type
from detaudit.model.fact import Fact, both, count, shortened, union
from detaudit.model.files import LeftState
from detaudit.model.problems import SAME_TRAINING, AnyRunError, OutputsOpen, errors
from detaudit.model.sources import AnyInapplicable, Override, Source
from detaudit.model.stage import STAGES, ArchiveFlaw, Stage
from detaudit.notebooks.cells import location_of


class Warning(Fact, frozen=True, kw_only=True):
    """A warning, and what it is about: an audit of a check, a recipe, a run, or a recording by its name."""

    audit: str = ""
    recipe: str = ""
    run: int = 0
    recording: str = ""

    def sentence(self) -> str:
        """Return what it says, after what it is about."""
        about = [name for name in (self.audit, self.recording, self.recipe) if name]
        if self.run and (self.recording or self.recipe):
            about[-1] += f" run {self.run}"
        elif self.run:
            about.append(f"run {self.run}")
        return "".join(f"{name}: " for name in about) + self.text()


_MOST_FILES = 8

_FLAWS = {
    ArchiveFlaw.CUT: "its end is missing",
    ArchiveFlaw.CHANGED: "it was changed after it was written",
    ArchiveFlaw.OTHER_VERSION: "it was written by another version of detaudit",
    ArchiveFlaw.NO_ARCHIVE: "it is not an archive of a run",
    ArchiveFlaw.UNREADABLE: "it cannot be unpacked",
}
_FLAGS = {"PYTHONHASHSEED": "python-hash-seed"}
"""Flags that set a variable in time."""


class FlagOverridden(Warning, frozen=True, kw_only=True):
    """A flag was applied, and the script undid it in a way that casts doubt on the recipe."""

    flag: str
    override: Override

    def text(self) -> str:
        return f"flag {self.flag} was overridden: {self.override.text()}"


class FlagNotApplied(Warning, frozen=True, kw_only=True):
    """A flag failed, or is unavailable here."""

    flag: str
    reason: AnyInapplicable | None

    def text(self) -> str:
        return f"flag {self.flag} was not applied{f': {self.reason.text()}' if self.reason else ''}"


class VariationFailed(Warning, frozen=True, kw_only=True):
    """A variation did not come about in the process."""

    variation: str
    detail: str

    def text(self) -> str:
        return f"variation {self.variation} failed: {self.detail}"


class SetTooLate(Warning, frozen=True, kw_only=True):
    """The script sets a variable after it was read: by Python at its start, or by ``module`` at its import."""

    variable: str
    file: str
    line: int
    module: str = ""

    def text(self) -> str:
        if not self.module:
            hint = f" (use --flag {_FLAGS[self.variable]})" if self.variable in _FLAGS else ""
            return (
                f"{location_of(self.file, self.line)} sets {self.variable} too late: it only takes effect before "
                f"Python starts{hint}"
            )
        return (
            f"{location_of(self.file, self.line)} sets {self.variable} too late: {self.module} reads it only at import"
        )


class SettingsDiffer(Warning, frozen=True, kw_only=True):
    """A run had other settings than the first: ``settings`` are name, value and the first run's value."""

    first: int
    settings: tuple[tuple[str, str, str], ...]
    more: int = 0

    def text(self) -> str:
        shown = [f"{name}={value} (run {self.first}: {before})" for name, value, before in self.settings]
        return f"ran with different settings than run {self.first}: {shortened(shown, self.more)}"


class SlotsDiffer(Warning, frozen=True, kw_only=True):
    """Of runs at once, those in the same slot match, and those in different ``slots`` differ."""

    slots: int

    def text(self) -> str:
        return (
            f"runs {self.slots} apart match (1 and {self.slots + 1}, 2 and {self.slots + 2}, …) and others differ: the "
            "training may depend on the path of its folder, on its CPUs or on its device. Check with --jobs 1."
        )


class RecorderFailed(Warning, frozen=True, kw_only=True):
    """The recorder failed somewhere; the script did not notice."""

    where: str
    error: str

    def text(self) -> str:
        return f"the recorder failed at {self.where}: {self.error}"


class ProcessesKilled(Warning, frozen=True, kw_only=True):
    """Processes that the run left behind were killed."""

    commands: tuple[str, ...]

    def text(self) -> str:
        return f"killed processes that the run left behind: {'; '.join(self.commands)}"


class RanksRestarted(Warning, frozen=True, kw_only=True):
    """A launcher started its ranks again, and only what they trained after the last time is compared."""

    times: int

    def text(self) -> str:
        return (
            f"its ranks were started again {count(self.times, 'time')}; only what they trained after that is compared"
        )


class ArtifactsSkipped(Warning, frozen=True, kw_only=True):
    """Files that match --artifact were not written by the run, and are not compared; ``more`` are not listed."""

    files: tuple[str, ...]
    more: int = 0

    def text(self) -> str:
        return f"skipped files that this run did not write: {shortened(self.files, self.more)}"


class TemporaryFilesSkipped(Warning, frozen=True, kw_only=True):
    """Runs wrote files of one name to the folder of temporary files, where none is compared."""

    files: tuple[str, ...]

    def text(self) -> str:
        names = shortened(self.files, most=_MOST_FILES)
        return f"temporary files are not compared ({names}); `--artifact PATH` compares one"


class NamesUnused(Warning, frozen=True, kw_only=True):
    """Values were declared by ``names`` that none has."""

    names: tuple[str, ...]

    def text(self) -> str:
        return f"nothing that was compared is called {both([repr(one) for one in self.names])} (--measured, --result)"


class LeftoverFilesRead(Warning, frozen=True, kw_only=True):
    """A run read files that an earlier run wrote; ``more`` are not listed. They may be ``isolated`` all the same."""

    files: tuple[str, ...]
    more: int = 0
    isolated: bool = False

    def text(self) -> str:
        if self.isolated:
            return (
                f"a run read files that an earlier run wrote outside of its copy ({shortened(self.files, self.more)}), "
                "so the "
                "runs did not start from the same state. Let the script write them below the working directory."
            )
        return (
            f"a run read files that an earlier run wrote ({shortened(self.files, self.more)}), so the runs did not "
            "start from the same state. Use --isolate to give each run its own copy."
        )


class FailedAfterLeftovers(Warning, frozen=True, kw_only=True):
    """A run failed where run ``finished`` did not, and found files that earlier runs left; ``more`` are not listed.

    Some may be ``outside`` of the working directory.
    """

    finished: int
    files: tuple[str, ...]
    more: int = 0
    outside: bool = False

    def text(self) -> str:
        cure = "use --isolate, so that each run has its own copy"
        if self.outside:
            cure = "let the script write them below the working directory, of which --isolate gives each run a copy"
        return (
            f"it failed where run {self.finished} did not, and found files that earlier runs left "
            f"({shortened(self.files, self.more)}), which may be why. Remove them and {cure}."
        )


class RunRepeated(Warning, frozen=True, kw_only=True):
    """A run was done again without files that earlier runs left; ``more`` are not listed.

    ``after_failure``: at first it failed on them; else it read them and had another result than the first run.
    ``removed``: they were of a run that was ended early, such as a state from which a training resumes.
    """

    files: tuple[str, ...]
    more: int = 0
    after_failure: bool
    removed: bool = False

    def text(self) -> str:
        shown = shortened(self.files, self.more)
        if self.removed:
            then = "failed" if self.after_failure else "had another result"
            return (
                f"it read what a run that was ended early had left ({shown}) and {then}; what that run had made was "
                "removed, and it was done again"
            )
        again = "it was done again without them, as later runs are"
        if self.after_failure:
            cure = "Remove them before the next command, whose first run fails on them otherwise."
            return f"it failed on files that earlier runs left ({shown}); {again}. {cure}"
        return f"it read files that earlier runs left ({shown}) and had another result; {again}"


class StateChecked(Warning, frozen=True, kw_only=True):
    """Runs read what earlier ones had left, and one more without it showed whether that matters."""

    state: LeftState

    def text(self) -> str:
        return self.state.checked()


class SeedsFromCountedClock(Warning, frozen=True, kw_only=True):
    """Lines seed generators from a clock that counts its readings: with the real one, runs would differ."""

    sources: tuple[Source, ...]

    def text(self) -> str:
        lines = both([one.with_place() for one in self.sources])
        return f"{lines}, which counts its readings in these runs: with the real clock, each has another seed"


class LeftoversUnchecked(Warning, frozen=True, kw_only=True):
    """Nobody can say whether runs read each other's files: inotify is unavailable, or they were started ``apart``."""

    apart: bool = False

    def text(self) -> str:
        if self.apart:
            return (
                "cannot check whether runs read each other's files, because they were started apart. "
                "Plan them with --isolate to be safe."
            )
        return (
            "cannot check whether runs read each other's files: inotify is unavailable or exhausted. "
            "Use --isolate to be safe."
        )


class FilesUnsearched(Warning, frozen=True, kw_only=True):
    """The search for files that runs write and read stopped after ``limit`` entries below ``folder``."""

    folder: str
    limit: int

    def text(self) -> str:
        return (
            f"the search for files that runs write and read stopped after {self.limit:,} entries of {self.folder}: "
            "others were not compared. Start the audit in a smaller folder, or use --no-files."
        )


class ArchiveFlawed(Warning, frozen=True, kw_only=True):
    """An archive of a run was left out."""

    archive: str
    flaw: ArchiveFlaw

    def text(self) -> str:
        return f"left out {self.archive}: {_FLAWS[self.flaw]}"


class ArchivesOfOtherPlans(Warning, frozen=True, kw_only=True):
    """Archives of other plans were left out; ``more`` are not listed."""

    archives: tuple[str, ...]
    more: int = 0

    def text(self) -> str:
        return f"left out archives of other plans: {shortened(self.archives, self.more)}"


class RunStoredTwice(Warning, frozen=True, kw_only=True):
    """Of two archives of one run, ``counted`` counts; the other is a copy of it, or another attempt."""

    archive: str
    counted: str
    is_copy: bool

    def text(self) -> str:
        return (
            f"left out {self.archive}: {'a copy' if self.is_copy else 'another attempt at the run'} of {self.counted}"
        )


class RunsFailAlike(Warning, frozen=True, kw_only=True):
    """Two runs failed in the same way, so that no more were started."""

    runs: tuple[int, int]

    def text(self) -> str:
        a, b = self.runs
        return f"runs {a} and {b} failed in the same way, so the others were left out"


class RunsLeftNothing(Warning, frozen=True, kw_only=True):
    """Two runs recorded nothing, wrote no file and printed nothing, so that no more were started."""

    runs: tuple[int, int]

    def text(self) -> str:
        a, b = self.runs
        return f"runs {a} and {b} recorded nothing and left neither a file nor text, so the others were left out"


class AuditStopped(Warning, frozen=True, kw_only=True):
    """The audit ended before its last run; ``message`` and ``hint`` are the error's."""

    message: str
    hint: str

    def text(self) -> str:
        return f"the audit ended before its last run: {self.message}{f'. {self.hint}' if self.hint else ''}"


class OutputsUndecided(Warning, frozen=True, kw_only=True):
    """With the flags of an answer the trainings match, and nobody can say whether the results do."""

    reason: OutputsOpen

    def text(self) -> str:
        return self.reason.text()


class InstrumentedRunUnusable(Warning, frozen=True, kw_only=True):
    """A run that recorded operations or lines failed."""

    level: str
    errors: tuple[AnyRunError, ...]

    def text(self) -> str:
        return f"an instrumented run (level {self.level}) was unusable: {errors(self.errors)}"


class BaselineNotWritten(Warning, frozen=True, kw_only=True):
    """No baseline was written because the runs were not shown to match."""

    def text(self) -> str:
        return "no baseline written: the runs were not shown to match"


class BaselineWithoutAudit(Warning, frozen=True, kw_only=True):
    """The lock file has a baseline of this name, and the project has no such audit any more."""

    def text(self) -> str:
        return "the lock file has a baseline of this name, but the project has no such audit; nothing checks it"


class EarlierResultDiffers(Warning, frozen=True, kw_only=True):
    """The runs of an earlier audit of the same training match each other, and have another result than these."""

    folders: tuple[str, ...]

    def text(self) -> str:
        return (
            f"earlier runs with {SAME_TRAINING} match each other and have a different result "
            f"({shortened(self.folders, most=3)}): something changed that is not recorded, such as data that native "
            "code reads or a variable, or the result depends on when it runs; `detaudit compare` shows where"
        )


class SameRecording(Warning, frozen=True, kw_only=True):
    """Both recordings are one and the same."""

    def text(self) -> str:
        return "A and B are the same recording, so the comparison proves nothing"


class RecipesDiffer(Warning, frozen=True, kw_only=True):
    """The recordings were made with different recipes."""

    a: str
    b: str

    def text(self) -> str:
        return f"different recipes ({self.a}, {self.b}): a flag may change results without fixing anything"


class RanksDiffer(Warning, frozen=True, kw_only=True):
    """The recordings have different numbers of ranks."""

    a: int
    b: int

    def text(self) -> str:
        return f"different numbers of ranks: {self.a} and {self.b}"


class FrameworksDiffer(Warning, frozen=True, kw_only=True):
    """A rank trained with different frameworks, whose digests never match."""

    rank: int
    a: str
    b: str

    def text(self) -> str:
        return (
            f"rank {self.rank} trained with {self.a} in A and with {self.b} in B: digests of different frameworks "
            "never match, so only the losses can be compared"
        )


class TensorCountsDiffer(Warning, frozen=True, kw_only=True):
    """A rank has different numbers of tensors of weights."""

    rank: int
    a: int
    b: int

    def text(self) -> str:
        return f"rank {self.rank} has {count(self.a, 'weight tensor')} in A and {self.b:,} in B"


class TensorLayoutsDiffer(Warning, frozen=True, kw_only=True):
    """A tensor of weights has different types or shapes; ``a`` and ``b`` are (dtype, shape)."""

    rank: int
    place: int
    a: tuple[str, tuple[int, ...]]
    b: tuple[str, tuple[int, ...]]

    def text(self) -> str:
        return f"rank {self.rank}: weight {self.place} is {tensor_type(*self.a)} in A and {tensor_type(*self.b)} in B"


class StagesNotShared(Warning, frozen=True, kw_only=True):
    """Only one recording has these stages, so they were not compared."""

    stages: tuple[Stage, ...]

    def text(self) -> str:
        return f"recorded only here, so not compared: {', '.join(self.stages)}"


class PartNotShared(Warning, frozen=True, kw_only=True):
    """Only one recording has printed losses, or files, so they were not compared."""

    part: Stage

    def text(self) -> str:
        return f"not compared, because only one side has them: {STAGES[self.part].part or self.part}"


class WeightsSampled(Warning, frozen=True, kw_only=True):
    """The weights were too large for a digest at every step."""

    def text(self) -> str:
        return "the weights are large, so they were recorded only at steps 1, 2, 4, 8, … and at the end"


class RunsDiffer(Warning, frozen=True, kw_only=True):
    """The runs of a recording differ from each other; only the first finished one is compared."""

    def text(self) -> str:
        return "its runs differ from each other; only the first finished one is compared"


class PrintedLossesSkipped(Warning, frozen=True, kw_only=True):
    """The printed losses of a recording were not compared, because no --loss-pattern was given."""

    def text(self) -> str:
        return "printed losses are not compared; pass --loss-pattern to read them"


class SubmoduleMissing(Warning, frozen=True, kw_only=True):
    """A commit has a submodule at a commit that is not in this clone; its ``folder`` is empty there."""

    folder: str
    commit: str

    def text(self) -> str:
        return f"the submodule {self.folder} is empty: its commit {self.commit} is not in this clone"


class FilesOfLfsMissing(Warning, frozen=True, kw_only=True):
    """A commit has files that LFS stores and that are not in this clone; there are pointers in their place."""

    files: tuple[str, ...]

    def text(self) -> str:
        names = shortened(self.files, most=_MOST_FILES)
        return f"{count(len(self.files), 'file')} of LFS are not in this clone, fetch them with git lfs fetch: {names}"


class NoChangeLoaded(Warning, frozen=True, kw_only=True):
    """Files differ between two commits, and no Python file that the runs loaded is one of them."""

    files: tuple[str, ...]

    def text(self) -> str:
        names = shortened(self.files, most=_MOST_FILES)
        return f"the runs loaded none of the Python files that differ, so nothing is known of these: {names}"


class PartingUnknown(Warning, frozen=True, kw_only=True):
    """Two codes were to be traced, and no operation was recorded that one of them has alone."""

    def text(self) -> str:
        return "where the codes part is not known: no operation with a tensor of one side alone was recorded"


class SamePackages(Warning, frozen=True, kw_only=True):
    """Two environments have the same packages, in the same builds, and the same Python."""

    def text(self) -> str:
        return "both environments have the same Python and the same packages"


class OperationUnknown(Warning, frozen=True, kw_only=True):
    """Two environments were to be traced, and nothing that was recorded says which operation differs first."""

    def text(self) -> str:
        return "which operation differs first is unknown: no operation and no variable was recorded that does"


if TYPE_CHECKING:
    AnyWarning: TypeAlias = Warning
else:
    AnyWarning = union(Warning)
