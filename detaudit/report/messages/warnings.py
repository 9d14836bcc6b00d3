"""What casts doubt on a result."""

from typing import TypeAlias

from detaudit.compat import assert_never
from detaudit.model import Stage, Warning  # the term for it
from detaudit.model.fact import count
from detaudit.model.stage import ArchiveFlaw
from detaudit.model.warnings import (
    ArchiveFlawed,
    ArchivesOfOtherPlans,
    ArtifactsSkipped,
    AuditStopped,
    BaselineNotWritten,
    BaselineWithoutAudit,
    FilesUnsearched,
    FlagNotApplied,
    FlagOverridden,
    FrameworksDiffer,
    InstrumentedRunUnusable,
    LeftoverFilesRead,
    LeftoversUnchecked,
    OutputsUndecided,
    PartNotShared,
    PrintedLossesSkipped,
    ProcessesKilled,
    RanksDiffer,
    RanksRestarted,
    RecipesDiffer,
    RecorderFailed,
    RunsDiffer,
    RunsFailAlike,
    RunsLeftNothing,
    RunStoredTwice,
    SameRecording,
    SettingsDiffer,
    SetTooLate,
    SlotsDiffer,
    StagesNotShared,
    StateChecked,
    TensorCountsDiffer,
    TensorLayoutsDiffer,
    VariationFailed,
    WeightsSampled,
)
from detaudit.report.messages import applicability, overrides, problems, tensors
from detaudit.report.messages.state import checked
from detaudit.report.messages.wording import shortened

_Settings: TypeAlias = FlagOverridden | FlagNotApplied | VariationFailed | SetTooLate | SettingsDiffer
_Runs: TypeAlias = (
    RecorderFailed
    | ProcessesKilled
    | RanksRestarted
    | RunsFailAlike
    | RunsLeftNothing
    | AuditStopped
    | InstrumentedRunUnusable
    | OutputsUndecided
    | BaselineNotWritten
    | BaselineWithoutAudit
    | SlotsDiffer
)
_Files: TypeAlias = ArtifactsSkipped | LeftoverFilesRead | StateChecked | LeftoversUnchecked | FilesUnsearched
_Archives: TypeAlias = ArchiveFlawed | ArchivesOfOtherPlans | RunStoredTwice
_Weights: TypeAlias = RanksDiffer | FrameworksDiffer | TensorCountsDiffer | TensorLayoutsDiffer | WeightsSampled
_Recordings: TypeAlias = (
    SameRecording | RecipesDiffer | StagesNotShared | PartNotShared | RunsDiffer | PrintedLossesSkipped
)

_PARTS = {
    Stage.STDOUT: "printed losses (--loss-pattern)",
    Stage.ARTIFACT: "files (--artifact)",
    Stage.SAVED: "saved files",
    Stage.PRINTED: "printed text",
    Stage.EXIT: "the exit status",
    Stage.RETURNED: "returned values",
}
_FLAWS = {
    ArchiveFlaw.CUT: "its end is missing",
    ArchiveFlaw.CHANGED: "it was changed after it was written",
    ArchiveFlaw.OTHER_VERSION: "it was written by another version of detaudit",
    ArchiveFlaw.NO_ARCHIVE: "it is not an archive of a run",
    ArchiveFlaw.UNREADABLE: "it cannot be unpacked",
}
_FLAGS = {"PYTHONHASHSEED": "python-hash-seed"}
"""Flags that set a variable in time."""


def sentence(found: Warning) -> str:
    """Return a warning, after what it is about: an audit, a recipe, a run, a recording."""
    return f"{_about(found)}{_text(found)}"


def _about(found: Warning) -> str:
    about = [name for name in (found.audit, found.recording, found.recipe) if name]
    if found.run and (found.recording or found.recipe):
        about[-1] += f" run {found.run}"
    elif found.run:
        about.append(f"run {found.run}")
    return "".join(f"{name}: " for name in about)


def _text(found: Warning) -> str:
    if isinstance(found, _Settings):
        return _settings(found)
    if isinstance(found, _Runs):
        return _runs(found)
    if isinstance(found, _Files):
        return _files(found)
    if isinstance(found, _Archives):
        return _archives(found)
    if isinstance(found, _Weights):
        return _weights(found)
    return _recordings(found)


def _settings(found: _Settings) -> str:
    match found:
        case FlagOverridden(flag=flag, override=override):
            return f"flag {flag} was overridden: {overrides.sentence(override)}"
        case FlagNotApplied(flag=flag, reason=reason):
            return f"flag {flag} was not applied{f': {applicability.inapplicable(reason)}' if reason else ''}"
        case VariationFailed(variation=variation, detail=detail):
            return f"variation {variation} failed: {detail}"
        case SetTooLate(variable=variable, file=file, line=line, module=""):
            hint = f" (use --flag {_FLAGS[variable]})" if variable in _FLAGS else ""
            return f"{file}:{line} sets {variable} too late: it only takes effect before Python starts{hint}"
        case SetTooLate(variable=variable, file=file, line=line, module=module):
            return f"{file}:{line} sets {variable} too late: {module} reads it only at import"
        case SettingsDiffer(first=first, settings=settings, more=more):
            shown = [f"{name}={value} (run {first}: {before})" for name, value, before in settings]
            return f"ran with different settings than run {first}: {shortened(shown, more)}"
        case _:
            assert_never(found)


def _runs(found: _Runs) -> str:
    match found:
        case RecorderFailed(where=where, error=error):
            return f"the recorder failed at {where}: {error}"
        case ProcessesKilled(commands=commands):
            return f"killed processes that the run left behind: {'; '.join(commands)}"
        case RanksRestarted(times=times):
            return f"its ranks were started again {count(times, 'time')}; only what they trained after that is compared"
        case RunsLeftNothing(runs=(a, b)):
            return f"runs {a} and {b} recorded nothing and left neither a file nor text, so the others were left out"
        case RunsFailAlike(runs=(a, b)):
            return f"runs {a} and {b} failed in the same way, so the others were left out"
        case AuditStopped(message=message, hint=hint):
            return f"the audit ended before its last run: {message}{f'. {hint}' if hint else ''}"
        case OutputsUndecided(reason=reason):
            return problems.reason(reason)
        case InstrumentedRunUnusable(level=level, errors=errors):
            return f"an instrumented run (level {level}) was unusable: {problems.errors(errors)}"
        case BaselineNotWritten():
            return "no baseline written: the runs were not shown to match"
        case BaselineWithoutAudit():
            return "the lock file has a baseline of this name, but the project has no such audit; nothing checks it"
        case SlotsDiffer(slots=slots):
            return (
                f"runs {slots} apart match (1 and {slots + 1}, 2 and {slots + 2}, …) and others differ: the training "
                "may depend on the path of its folder, on its CPUs or on its device. Check with --jobs 1."
            )
        case _:
            assert_never(found)


def _files(found: _Files) -> str:
    match found:
        case ArtifactsSkipped(files=files, more=more):
            return f"skipped files that this run did not write: {shortened(files, more)}"
        case StateChecked(state=state):
            return checked(state)
        case LeftoverFilesRead(files=files, more=more, isolated=True):
            return (
                f"a run read files that an earlier run wrote outside of its copy ({shortened(files, more)}), so the "
                "runs did not start from the same state. Let the script write them below the working directory."
            )
        case LeftoverFilesRead(files=files, more=more):
            return (
                f"a run read files that an earlier run wrote ({shortened(files, more)}), so the runs did not start "
                "from the same state. Use --isolate to give each run its own copy."
            )
        case LeftoversUnchecked(apart=True):
            return (
                "cannot check whether runs read each other's files, because they were started apart. "
                "Plan them with --isolate to be safe."
            )
        case LeftoversUnchecked():
            return (
                "cannot check whether runs read each other's files: inotify is unavailable or exhausted. "
                "Use --isolate to be safe."
            )
        case FilesUnsearched(folder=folder, limit=limit):
            return (
                f"the search for files that runs write and read stopped after {limit:,} entries of {folder}: others "
                "were not compared. Start the audit in a smaller folder, or use --no-files."
            )
        case _:
            assert_never(found)


def _archives(found: _Archives) -> str:
    match found:
        case ArchiveFlawed(archive=archive, flaw=flaw):
            return f"left out {archive}: {_FLAWS[flaw]}"
        case ArchivesOfOtherPlans(archives=archives, more=more):
            return f"left out archives of other plans: {shortened(archives, more)}"
        case RunStoredTwice(archive=archive, counted=counted, is_copy=is_copy):
            return f"left out {archive}: {'a copy' if is_copy else 'another attempt at the run'} of {counted}"
        case _:
            assert_never(found)


def _weights(found: _Weights) -> str:
    match found:
        case RanksDiffer(a=a, b=b):
            return f"different numbers of ranks: {a} and {b}"
        case FrameworksDiffer(rank=rank, a=one, b=other):
            return (
                f"rank {rank} trained with {one} in A and with {other} in B: digests of different frameworks never "
                "match, so only the losses can be compared"
            )
        case TensorCountsDiffer(rank=rank, a=a, b=b):
            return f"rank {rank} has {count(a, 'weight tensor')} in A and {b:,} in B"
        case TensorLayoutsDiffer(rank=rank, place=place, a=mine, b=theirs):
            return f"rank {rank}: weight {place} is {tensors.kind(*mine)} in A and {tensors.kind(*theirs)} in B"
        case WeightsSampled():
            return "the weights are large, so they were recorded only at steps 1, 2, 4, 8, … and at the end"
        case _:
            assert_never(found)


def _recordings(found: _Recordings) -> str:
    match found:
        case SameRecording():
            return "A and B are the same recording, so the comparison proves nothing"
        case RecipesDiffer(a=a, b=b):
            return f"different recipes ({a}, {b}): a flag may change results without fixing anything"
        case StagesNotShared(stages=stages):
            return f"recorded only here, so not compared: {', '.join(stages)}"
        case PartNotShared(part=part):
            return f"not compared, because only one side has them: {_PARTS.get(part, part)}"
        case RunsDiffer():
            return "its runs differ from each other; only the first finished one is compared"
        case PrintedLossesSkipped():
            return "printed losses are not compared; pass --loss-pattern to read them"
        case _:
            assert_never(found)
