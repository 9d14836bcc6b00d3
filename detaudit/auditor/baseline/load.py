"""Load what one run recorded: from the results folder of an audit, or from a lock file."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from detaudit.auditor import store
from detaudit.auditor.baseline import lockfile
from detaudit.auditor.baseline.recordings import file_digests, recording_of
from detaudit.auditor.evidence import environment, folded, printed, written
from detaudit.auditor.evidence.logged import Block
from detaudit.auditor.judge.run_status import recorded
from detaudit.auditor.judge.through import cut
from detaudit.errors import AuditNotFoundError, NothingToCompareError, UsageError
from detaudit.model import (
    UNHOOKED,
    Audit,
    FinalState,
    Group,
    Recording,
    Run,
    Stage,
    Training,
    Verdict,
    Warning,
    record_of,
)
from detaudit.model.reasons import OnlyProbes
from detaudit.model.warnings import PrintedLossesSkipped, RunsDiffer
from detaudit.recipe.names import unknown

_WHERE_RUNS_ARE = 3
"""The last parts of a run's folder: runs/<recipe>/<number>."""


@dataclass(frozen=True)
class Loaded:
    """A recording, and what casts doubt on it."""

    recording: Recording
    warnings: tuple[Warning, ...] = ()


def load(place: str, recipe: str | None = None, losses: re.Pattern[str] | None = None) -> Loaded:
    """Return what is recorded at ``place``: the folder of an audit, its audit.json, or ``LOCK#NAME``.

    Of an audit that is the first finished run with ``recipe``, by default its first recipe. Printed losses are read
    again with the pattern ``losses``.

    Raises AuditNotFoundError or ConfigError if nothing can be read, UnknownNameError for a recipe or baseline that does
    not exist, NothingToCompareError if no run recorded anything.
    """
    path, name = _split(place)
    if _is_lock(path) or (name and not path.is_dir()):
        return Loaded(_of_lock(path, name))
    if name:
        raise UsageError(f"{path} has no baselines, so none called {name!r}", "--recipe NAME chooses among recipes.")
    audit = store.load(path)
    group = _group(audit, recipe, place)
    return _of_run(place, path if path.is_dir() else path.parent, audit, group, losses)


def _split(place: str) -> tuple[Path, str]:
    if "#" not in place or Path(place).exists():
        return Path(place), ""
    path, _, name = place.rpartition("#")
    return Path(path), name


def _is_lock(path: Path) -> bool:
    if path.name.endswith(".lock.json"):
        return True
    try:
        found = json.loads(path.read_bytes())
    except (OSError, RecursionError, ValueError):
        return False
    return isinstance(found, dict) and "audits" in found


def _of_lock(path: Path, name: str) -> Recording:
    found = lockfile.find(path, name)
    if not found.run.parts:
        raise NothingToCompareError(f"the run of the baseline in {path} recorded nothing")
    return found


def _group(audit: Audit, recipe: str | None, place: str) -> Group:
    if not audit.groups:
        raise NothingToCompareError(f"{place} was interrupted before its first run", "Run it again.")
    found = next((group for group in audit.groups if recipe in (None, group.recipe.name)), None)
    if found is None:
        raise unknown("recipe", recipe or "", [group.recipe.name for group in audit.groups], str(place))
    return found


def _of_run(place: str, folder: Path, audit: Audit, group: Group, losses: re.Pattern[str] | None) -> Loaded:
    run = group.first_finished
    if run is None or not (run.ranks or losses):
        failed = next((one.errors for one in group.runs), ())
        raise NothingToCompareError(
            f"{place} has no run with recipe {group.recipe.name} that can be compared",
            "--recipe NAME chooses another recipe.",
            (OnlyProbes(),) if run else failed,
        )
    logs = logs_of(run, folder)
    parts = (*trained(run, logs), *_printed(place, run, logs, losses), *_written(run, logs))
    if not parts:
        raise NothingToCompareError(f"{place} has only printed losses", "Pass --loss-pattern REGEX to compare them.")
    relevant = environment.relevant(audit.environment)
    recording = recording_of(audit.target or audit.command, group.recipe, relevant, run, record_of(parts))
    return Loaded(recording, tuple(_doubts(place, group, run, losses)))


def logs_of(run: Run, folder: Path) -> Path:
    """Return where the logs of a run of the audit in ``folder`` are.

    Older versions wrote where they were then; but the folder may have been moved, and a different one be there now.
    """
    moved = folder.joinpath(*Path(run.log_dir).parts[-_WHERE_RUNS_ARE:])
    return moved if moved.is_dir() else folder / run.log_dir


def trained(run: Run, logs: Path, known: dict[bytes, Block] | None = None) -> tuple[Training, ...]:
    """Return the trainings of a run, read from its event logs again; ``known`` has the blocks of runs read before."""
    ranks = tuple(rank for rank in run.ranks if rank.framework not in UNHOOKED or rank.framework == Stage.RETURNED)
    if not ranks:
        return ()
    processes = folded.read_run(logs, known)
    if run.through is not None:
        cut(processes, run.through)
    trainings = recorded(processes)
    if record_of(trainings).ranks == ranks:
        return trainings
    gone = f"the event logs of run {run.id} are missing or unreadable: {logs}"
    other = f"the event logs in {logs} are from a different audit, or a different version of detaudit"
    raise AuditNotFoundError(
        other if trainings else gone,
        f"Pass the whole results folder, or run it again. A baseline in {lockfile.LOCK} needs no event logs.",
    )


def _printed(place: str, run: Run, logs: Path, losses: re.Pattern[str] | None) -> Iterator[Training]:
    if losses is None:
        return
    found = printed.read(logs / "stdout.log", losses)
    if found.training is None:
        message = f"no losses can be read from the stdout of run {run.id} in {place}"
        raise NothingToCompareError(message, "Change the pattern, or leave it out.", (found.error,))
    yield found.training


def _written(run: Run, logs: Path) -> Iterator[Training]:
    """Yield the files that a run wrote; their digests are in the results folder, the files themselves are gone."""
    saved = written.as_training(written.kept(logs).files)
    if saved is not None:
        yield saved
    for rank in run.ranks:
        if rank.framework == Stage.ARTIFACT:
            final = FinalState(digest=rank.digest, sum=rank.sum_of_weights)
            yield Training(framework=rank.framework, digests=file_digests(run.artifacts), final=final)


def _doubts(place: str, group: Group, run: Run, losses: re.Pattern[str] | None) -> Iterator[Warning]:
    if group.verdict is Verdict.NONDETERMINISTIC:
        yield RunsDiffer(recording=place)
    if losses is None and any(rank.framework == Stage.STDOUT for rank in run.ranks):
        yield PrintedLossesSkipped(recording=place)
    yield from (replace(warning, recording=place) for warning in run.warnings)
