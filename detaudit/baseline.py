"""Recordings that outlive their logs: thinned, written to the lock file, and read again from wherever they are."""

import json
import re
from collections.abc import Iterator, Mapping, Reversible, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from detaudit import store
from detaudit.config.yamlfile import unknown
from detaudit.errors import AuditNotFoundError, ConfigError, NothingToCompareError, UnknownNameError, UsageError
from detaudit.judge import comparer
from detaudit.model import (
    AppliedRecipe,
    Artifact,
    Audit,
    FinalState,
    Group,
    LockChange,
    Recording,
    Run,
    RunRecord,
    Stage,
    Training,
    Verdict,
    Warning,
    record_of,
)
from detaudit.model.fact import encode
from detaudit.model.problems import OnlyProbes
from detaudit.model.warnings import PrintedLossesSkipped, RunsDiffer
from detaudit.outputs import compare
from detaudit.runs import environment, files, printed
from detaudit.runs.status import logs_of, trained

# Recordings: made of what a run was compared by, and thinned out for a baseline.


KEPT_STEPS = 64
"""How many steps of each stage the baseline of a long training keeps, beside the powers of two."""

_STEPS_PER_KEPT = 32
"""A shorter one keeps a step of so many: its powers of two are close to each other."""


def recording_of(
    command: Sequence[str], recipe: AppliedRecipe, environment: Mapping[str, str], run: Run, record: RunRecord
) -> Recording:
    """Return what ``run`` recorded; ``record`` is what it was compared by."""
    kept = replace(record, unhooked=tuple(_by_file(part, run) for part in record.unhooked))
    return Recording(command=tuple(command), recipe=recipe, environment=dict(environment), run=kept)


def _by_file(part: Training, run: Run) -> Training:
    match part.framework:
        case Stage.ARTIFACT:
            return replace(part, digests=file_digests(run.artifacts))
        case _:
            return part


def file_digests(artifacts: Sequence[Artifact]) -> dict[Stage, dict[int, tuple[str, ...]]]:
    """Return one digest for each file: an audit keeps no more of them, and a baseline stays small."""
    return {Stage.ARTIFACT: {0: tuple(f"{file.digest} {file.path}" for file in artifacts)}}


def ended(recording: Recording, step: int) -> Recording:
    """Return a recording as of a run that was ended after a step: without what followed, and without its files."""
    trainings = tuple(part if part.steps <= step else part.through(step) for part in recording.run.trainings)
    return replace(recording, run=RunRecord(trainings=trainings))


def thinned(recording: Recording) -> Recording:
    """Return a recording with some steps only: the first two, powers of two, the last, and up to KEPT_STEPS between.

    Of generators it has the first and the last step.

    Of what left the run it has one digest for each file and stream.
    """
    run, left = recording.run.each(_thin), recording.run.outputs
    return replace(recording, run=replace(run, outputs=compare.thinned(left) if left is not None else None))


def _thin(part: Training) -> Training:
    kept_steps = {stage: _kept(steps) for stage, steps in part.digests.items()}
    if drawn := kept_steps.get(Stage.RNG):  # what differs later shows in the other stages
        kept_steps[Stage.RNG] = [step for step in drawn if step <= 1 or step == drawn[-1]]
    digests: dict[Stage, dict[int, tuple[str, ...]]] = {stage: {} for stage in kept_steps}
    # Step by step, because an event log has the stages of a step together.
    for step in sorted({step for kept in kept_steps.values() for step in kept}):
        for stage, steps in part.digests.items():
            if step in kept_steps[stage] and step in steps:
                digests[stage][step] = steps[step]
    losses = {step: part.losses[step] for step in _kept(part.losses) if step in part.losses}
    return replace(part, digests=digests, losses=losses, weight_sets=())


def _kept(steps: Mapping[int, object]) -> list[int]:
    """Return the steps to keep, in the order in which they were recorded; of an event log, those that it may have."""
    in_memory = isinstance(steps, dict)
    last = max([0, *steps]) if in_memory else next(reversed(cast("Reversible[int]", steps)), 0)
    stride = max(last // KEPT_STEPS + 1, _STEPS_PER_KEPT)
    kept = {last, *(2**power for power in range(last.bit_length())), *range(0, last + 1, stride)}
    return [step for step in steps if step in kept or step < 0] if in_memory else sorted(kept)


def asked(recording: Recording) -> dict[str, str]:
    """Return the command, seed and flags of a recording, as text."""
    flags = ", ".join(sorted(recording.recipe.flags))
    return {"command": " ".join(recording.command), "seed": str(recording.recipe.seed), "flags": flags}


# The lock file: the baselines of a project's audits, committed with it.


SCHEMA_VERSION = "2.0"
"""Of the lock file: a new key raises the second number, any other change the first.

2.0: what left the run. Earlier layouts were never released.
"""

_LINE = 300
"""The longest line of the file whose parts have no lines of their own."""

_WRITE = "Create it with `detaudit check --update`."


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a lock file."""

    schema_version: str
    audits: dict[str, Recording]


def read_lock(path: Path) -> dict[str, Recording]:
    """Return the baselines in a lock file by name.

    Raises AuditNotFoundError if there is none, ConfigError if it is broken or of another version.
    """
    try:
        return read(path.read_bytes(), path)
    except OSError as error:
        raise AuditNotFoundError(f"no lock file {path}: {error.strerror}", _WRITE) from error


def read(data: bytes, path: Path = Path(store.LOCK)) -> dict[str, Recording]:
    """Return the baselines in the content of a lock file by name. Raises ConfigError if it is broken."""
    hint = "Restore it from version control, or remove it and write it again with `detaudit check --update`."
    try:
        version = _version(path, data, hint)
        if not store.is_readable(version, SCHEMA_VERSION):
            message = f"{path} has schema version {version}; this version of detaudit reads {SCHEMA_VERSION}"
            hint = "Remove it and write it again with `detaudit check --update`, or use the detaudit that wrote it."
            raise ConfigError(message, hint)
        return msgspec.json.decode(data, type=Lock).audits
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a lock file: {error}", hint) from error


def _version(path: Path, data: bytes, hint: str) -> object:
    try:
        return msgspec.convert(json.loads(data), dict[str, object]).get("schema_version")
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}:{error.colno} is not a lock file: {error.msg}"
        raise ConfigError(message, hint) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a lock file: {error.reason}", hint) from error
    except ValueError as error:  # such as a number with thousands of digits
        raise ConfigError(f"{path} is not a lock file: {error}", hint) from error


def find(path: Path, name: str) -> Recording:
    """Return one baseline of a lock file; the only one if ``name`` is empty.

    Raises as read_lock does, and UnknownNameError for a name that is not there.
    """
    audits = read_lock(path)
    if not name and len(audits) == 1:
        return next(iter(audits.values()))
    if not name:
        hint = f"Name one of them: {', '.join(f'{path}#{one}' for one in sorted(audits))}."
        raise UnknownNameError(f"{path} has {len(audits)} baselines", hint if audits else _WRITE)
    if name not in audits:
        raise unknown("baseline", name, sorted(audits))
    return audits[name]


def write_lock(path: Path, audits: Mapping[str, Recording]) -> None:
    """Write a lock file. Raises StorageError if that fails."""
    lock = Lock(schema_version=SCHEMA_VERSION, audits=dict(sorted(audits.items())))
    document = json.loads(encode(_without_defaults(lock)))
    store.write(path, f"{_laid_out(document)}\n".encode(), shared=True)


def _without_defaults(value: Any) -> Any:
    """Return objects as dicts without what their classes have by default, to which they are read again."""
    if isinstance(value, msgspec.Struct) and not value.__struct_config__.array_like:
        fields = [(one, getattr(value, one.name)) for one in msgspec.structs.fields(value)]
        kept = [(one.encode_name, own) for one, own in fields if one.required or own != _default(one)]
        return {name: _without_defaults(own) for name, own in kept}
    if isinstance(value, Mapping):
        return {key: _without_defaults(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_defaults(one) for one in value]
    return value


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _laid_out(value: Any) -> str:
    """Return JSON in which what fits into a line is on one, so that a file under version control changes by lines."""
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(compact) <= _LINE or not isinstance(value, dict | list):
        return compact
    names = [f"{json.dumps(name, ensure_ascii=False)}: " for name in value] if isinstance(value, dict) else repeat("")
    ones = value.values() if isinstance(value, dict) else value
    lines = ",\n".join(f"{name}{_laid_out(one)}" for name, one in zip(names, ones, strict=False))
    return f"{{\n{lines}\n}}" if isinstance(value, dict) else f"[\n{lines}\n]"


def changes(name: str, old: Recording | None, new: Recording) -> list[LockChange]:
    """Return what changed in a baseline; nothing if it is the same."""
    if old is None:
        return [LockChange(audit=name, new_ranks=new.run.ranks)]
    changed = []
    if not comparer.same(old.run, new.run):
        changed.append(LockChange(audit=name, old_ranks=old.run.ranks, new_ranks=new.run.ranks))
    a, b = (dict(asked(side), **side.environment) for side in (old, new))
    changed += [LockChange(audit=name, name=one.name, old=one.a, new=one.b) for one in environment.changes(a, b)]
    return changed or ([LockChange(audit=name)] if old != new else [])


# Load what one run recorded: from the results folder of an audit, or from a lock file.


@dataclass(frozen=True)
class Loaded:
    """A recording, and what casts doubt on it."""

    recording: Recording
    warnings: tuple[Warning, ...] = ()


def load(location: str, recipe: str | None = None, losses: re.Pattern[str] | None = None) -> Loaded:
    """Return what is recorded at ``location``: the folder of an audit, its audit.json, or ``LOCK#NAME``.

    Of an audit that is the first finished run with ``recipe``, by default its first recipe. Printed losses are read
    again with the pattern ``losses``.

    Raises AuditNotFoundError or ConfigError if nothing can be read, UnknownNameError for a recipe or baseline that does
    not exist, NothingToCompareError if no run recorded anything.
    """
    path, name = _split(location)
    if _is_lock(path) or (name and not path.is_dir()):
        return Loaded(_of_lock(path, name))
    if name:
        raise UsageError(f"{path} has no baselines, so none called {name!r}", "--recipe NAME chooses among recipes.")
    audit = store.load(path)
    group = _group(audit, recipe, location)
    return _of_run(location, path if path.is_dir() else path.parent, audit, group, losses)


def location(text: str) -> Path:
    """Return the results folder or the lock file that ``load`` reads."""
    path, _ = _split(text)
    return path.parent if path.is_file() and not _is_lock(path) else path


def _split(location: str) -> tuple[Path, str]:
    if "#" not in location or Path(location).exists():
        return Path(location), ""
    path, _, name = location.rpartition("#")
    return Path(path), name


def _is_lock(path: Path) -> bool:
    if path.name.endswith(".lock.json"):
        return True
    try:
        document = json.loads(path.read_bytes())
    except (OSError, RecursionError, ValueError):
        return False
    return isinstance(document, dict) and "audits" in document


def _of_lock(path: Path, name: str) -> Recording:
    recording = find(path, name)
    if not recording.run.parts:
        raise NothingToCompareError(f"the run of the baseline in {path} recorded nothing")
    return recording


def _group(audit: Audit, recipe: str | None, location: str) -> Group:
    if not audit.groups:
        raise NothingToCompareError(f"{location} was interrupted before its first run", "Run it again.")
    chosen = next((group for group in audit.groups if recipe in (None, group.recipe.name)), None)
    if chosen is None:
        raise unknown("recipe", recipe or "", [group.recipe.name for group in audit.groups], str(location))
    return chosen


def _of_run(location: str, folder: Path, audit: Audit, group: Group, losses: re.Pattern[str] | None) -> Loaded:
    run = group.first_finished
    if run is None or not (run.ranks or losses):
        failed = next((one.errors for one in group.runs), ())
        raise NothingToCompareError(
            f"{location} has no run with recipe {group.recipe.name} that can be compared",
            "--recipe NAME chooses another recipe.",
            (OnlyProbes(),) if run else failed,
        )
    logs = logs_of(run, folder)
    parts = (*trained(run, logs), *_printed(location, run, logs, losses), *_artifacts(run))
    if not parts:
        raise NothingToCompareError(f"{location} has only printed losses", "Pass --loss-pattern REGEX to compare them.")
    relevant = environment.relevant(audit.environment)
    recording = recording_of(
        audit.target or audit.command, group.recipe, relevant, run, record_of(parts, files.kept(logs))
    )
    return Loaded(recording, tuple(_doubts(location, group, run, losses)))


def _printed(location: str, run: Run, logs: Path, losses: re.Pattern[str] | None) -> Iterator[Training]:
    if losses is None:
        return
    reading = printed.read(logs / "stdout.log", losses)
    if reading.training is None:
        message = f"no losses can be read from the stdout of run {run.id} in {location}"
        raise NothingToCompareError(message, "Change the pattern, or leave it out.", (reading.error,))
    yield reading.training


def _artifacts(run: Run) -> Iterator[Training]:
    """Yield the files that --artifact named; their digests are in the report, the files themselves are gone."""
    for rank in run.ranks:
        if rank.framework == Stage.ARTIFACT:
            final = FinalState(digest=rank.digest, sum=rank.sum_of_weights)
            yield Training(framework=rank.framework, digests=file_digests(run.artifacts), final=final)


def _doubts(location: str, group: Group, run: Run, losses: re.Pattern[str] | None) -> Iterator[Warning]:
    if group.verdict is Verdict.NONDETERMINISTIC:
        yield RunsDiffer(recording=location)
    if losses is None and any(rank.framework == Stage.STDOUT for rank in run.ranks):
        yield PrintedLossesSkipped(recording=location)
    yield from (replace(warning, recording=location) for warning in run.warnings)
