"""Reads back what one run recorded: from the folder of an audit, or from a lock file of baselines."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor import store
from detaudit.auditor.baseline import lockfile
from detaudit.auditor.baseline.recordings import file_digests, recording_of
from detaudit.auditor.evidence import environment, event_logs, printed
from detaudit.auditor.judge.run_status import recorded
from detaudit.errors import AuditNotFoundError, NothingToCompareError, UsageError
from detaudit.model import UNHOOKED, Audit, FinalState, Group, Recording, Run, Stage, Training, Verdict, record_of
from detaudit.recipe.names import unknown

_WHERE_RUNS_ARE = 3
"""The last parts of a run's folder: runs/<recipe>/<number>."""


@dataclass(frozen=True)
class Loaded:
    """A recording, and what throws doubt on it."""

    recording: Recording
    warnings: tuple[str, ...] = ()


def load(place: str, recipe: str | None = None, losses: re.Pattern[str] | None = None) -> Loaded:
    """Return what is recorded at ``place``: the folder of an audit, its audit.json, or ``LOCK#NAME``.

    Of an audit that is the first run that finished under ``recipe``, by default its first one. What it printed is
    read again with the pattern for ``losses``.

    Raises AuditNotFoundError or ConfigError where nothing can be read, UnknownNameError for a recipe or baseline that
    is not there, NothingToCompareError where no run recorded anything.
    """
    path, name = _split(place)
    if _is_lock(path) or (name and not path.is_dir()):
        return Loaded(_of_lock(path, name))
    if name:
        raise UsageError(f"{path} holds no baselines, so none called {name!r}", "--recipe NAME chooses among recipes.")
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
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "audits" in found


def _of_lock(path: Path, name: str) -> Recording:
    found = lockfile.find(path, name)
    if not found.run.parts:
        raise NothingToCompareError(f"the baseline in {path} is of a run that recorded nothing")
    return found


def _group(audit: Audit, recipe: str | None, place: str) -> Group:
    if not audit.groups:
        raise NothingToCompareError(f"{place} was ended before its first run", "Run it again.")
    found = next((group for group in audit.groups if recipe in (None, group.recipe.name)), None)
    if found is None:
        raise unknown(f"recipe in {place} called", recipe or "", [group.recipe.name for group in audit.groups])
    return found


def _of_run(place: str, folder: Path, audit: Audit, group: Group, losses: re.Pattern[str] | None) -> Loaded:
    run = group.whole
    if run is None or not (run.ranks or losses):
        reason = "nothing but probes was recorded" if run else next((r.problem for r in group.runs), "it has no runs")
        raise NothingToCompareError(
            f"{place} has no run of the recipe {group.recipe.name} that can be compared: {reason}",
            "--recipe NAME chooses another recipe.",
        )
    logs = _logs(run, folder)
    parts = (*_trained(run, logs), *_printed(place, run, logs, losses), *_written(run))
    if not parts:
        raise NothingToCompareError(
            f"of {place} nothing is known but printed losses", "Take them from its output: --loss-pattern REGEX"
        )
    relevant = environment.bearing(audit.environment)
    recording = recording_of(audit.target or audit.command, group.recipe, relevant, run, record_of(parts))
    return Loaded(recording, tuple(_doubts(place, group, run, losses)))


def _logs(run: Run, folder: Path) -> Path:
    """Return where a run's logs are: below the audit that was named, since it may have been moved or replaced."""
    moved = folder.joinpath(*Path(run.logs).parts[-_WHERE_RUNS_ARE:])
    return moved if moved.is_dir() else Path(run.logs)


def _trained(run: Run, logs: Path) -> tuple[Training, ...]:
    """Return the trainings of a run, read from its event logs again."""
    ranks = tuple(rank for rank in run.ranks if rank.framework not in UNHOOKED or rank.framework == Stage.RETURNED)
    if not ranks:
        return ()
    trainings = recorded(event_logs.read_run(logs))
    if record_of(trainings).ranks == ranks:
        return trainings
    gone = f"the traces of run {run.id} are not there any more, or cannot be read: {logs}"
    other = f"the traces in {logs} are of another audit, or of another version of detaudit"
    raise AuditNotFoundError(
        other if trainings else gone,
        "Name the folder that `detaudit run` wrote, with all that is in it, or run it again. A baseline in "
        f"{lockfile.LOCK} needs no traces.",
    )


def _printed(place: str, run: Run, logs: Path, losses: re.Pattern[str] | None) -> Iterator[Training]:
    if losses is None:
        return
    found = printed.read(logs / "stdout.log", losses)
    if found.training is None:
        raise NothingToCompareError(f"{place} run {run.id}: {found.problem}", "Change the pattern, or leave it out.")
    yield found.training


def _written(run: Run) -> Iterator[Training]:
    """Yield the files that a run wrote; their digests are in the audit, the files themselves are gone."""
    for rank in run.ranks:
        if rank.framework == Stage.ARTIFACT:
            final = FinalState(digest=rank.digest, sum=rank.sum_of_weights)
            yield Training(framework=rank.framework, digests=file_digests(run.artifacts), final=final)


def _doubts(place: str, group: Group, run: Run, losses: re.Pattern[str] | None) -> Iterator[str]:
    if group.verdict is Verdict.NONDETERMINISTIC:
        yield f"{place}: its own runs differ from each other, so this compares one of several results"
    if losses is None and any(rank.framework == Stage.STDOUT for rank in run.ranks):
        yield f"{place}: what it printed is left out; --loss-pattern REGEX reads it again"
    yield from (f"{place} run {run.id}: {text}" for text in run.warnings)
