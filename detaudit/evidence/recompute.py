"""What a report says, judged again from the logs beside it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from detaudit.baseline import load
from detaudit.check import repeatable
from detaudit.compare import compare
from detaudit.config.flags import load_catalogue
from detaudit.config.options import compiled
from detaudit.config.recipes import Recipe
from detaudit.errors import DetauditError, UsageError
from detaudit.judge import verdict
from detaudit.judge.group import GroupInProgress
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.target import Target
from detaudit.launch.workspace import SharedWorkspace
from detaudit.model import (
    Audit,
    Check,
    Comparison,
    FinalState,
    Group,
    Run,
    Stage,
    Status,
    Training,
    Verdict,
    record_of,
    shorter,
)
from detaudit.model.problems import CoresReduced, DeviceShared, RunsCrowded
from detaudit.notebooks.cells import SCRIPTS
from detaudit.runs import environment, files, log, printed
from detaudit.runs.status import cut, logs_of, recorded, tail

TAKEN = {
    "audit": (
        "command",
        "warnings",
        "next_steps",
        "started",
        "ended",
        "interrupted",
        "across",
        "target",
        "loss_pattern",
        "data",
        "installed",
        "options",
    ),
    "environment": (
        *("detaudit", "system", "machine", "cpu", "instructions", "cpus", "libc", "gpus", "driver", "variables"),
        *("cuda", "cudnn"),
    ),
    "group": (
        "sources",
        "excerpts",
        "flags",
        "warnings",
        "not_varied",
        "varied",
        "machines",
        "left_state",
        "recipe",
        "planned_runs",
    ),
    "of_run": ("wall_s", "errors", "unseen", "warnings", "step_s", "exit_code", "status", "artifacts"),
}
"""What logs do not show: of an audit, of its machine, of its groups and of their runs. Hashes alone guard it."""

_SHARED = (RunsCrowded, CoresReduced, DeviceShared)
"""Why runs that match may not count, which depends on what they had of the machine."""


def edited(report: Audit | Check, folder: Path) -> tuple[list[str], list[str]]:
    """Return in what a report is not what the logs in its results folder show, and what was not judged again."""
    if isinstance(report, Audit):
        return _of_audit(report, folder, "")
    differing: list[str] = []
    open_: list[str] = []
    for one in report.audits:
        other, more = _of_audit(one.audit, folder / one.name, f"{one.name}: ")
        differing, open_ = [*differing, *other], [*open_, *more]
        gates = one.gates[:1]
        if gates and one.audit.groups and type(gates[0].detail).__name__ != "RunsDifferedEarlier":
            differing += _differing(f"{one.name}: gates.0", gates[0], repeatable(one.audit.groups[0]))
        open_ += [f"{one.name}: the gate {gate.name}" for gate in one.gates[1:]]
    return differing, open_


_NARROWED = ("--loss-pattern", "--until")


def edited_comparison(report: Comparison, folder: Path) -> tuple[list[str], list[str]]:
    """Return in what a comparison is not what the two sides in ``folder`` show, and what was not judged again."""
    narrowed = [option for option in _NARROWED if any(word.split("=")[0] == option for word in report.command)]
    if narrowed or report.through is not None:
        return [], [f"the comparison: it was narrowed by {' and '.join(narrowed) or 'the ends of its sides'}"]
    ours, theirs = (load(str(side), recipe) for side, recipe in _sides(report, folder))
    again = compare(
        ours.recording, theirs.recording, names=(report.a.name, report.b.name), command=report.command, warnings=()
    )
    differing = _differing("", replace(report, warnings=(), next_steps=()), replace(again, warnings=(), next_steps=()))
    return differing, []


def _sides(report: Comparison, folder: Path) -> Iterator[tuple[str, str | None]]:
    for name, side in (("a", report.a), ("b", report.b)):
        lock = folder / name / "detaudit.lock.json"
        if lock.exists():
            yield f"{lock}#{side.name.rpartition('#')[2]}" if "#" in side.name else str(lock), None
        else:
            yield str(folder / name), side.recipe.name


def _of_audit(audit: Audit, folder: Path, where: str) -> tuple[list[str], list[str]]:
    differing: list[str] = []
    open_: list[str] = []
    shown: dict[str, Any] = {"python": None, "frameworks": {}, "packages": {}}
    for number, group in enumerate(audit.groups):
        name = f"{where}recipe {group.recipe.name}"
        if group.machines:
            open_.append(f"{name}: runs of several machines")
            continue
        try:
            again = _judged(audit, group, folder, shown)
        except (DetauditError, OSError) as error:
            differing.append(f"{name}: the logs cannot be judged again: {error}")
            continue
        if isinstance(group.reason, _SHARED):
            open_.append(f"{name}: whether runs at once had enough of the machine")
            again = replace(again, verdict=group.verdict, reason=group.reason, confidence=group.confidence)
        if group.earlier:
            open_.append(f"{name}: what earlier audits showed, whose logs are not in the archive")
            again = _with_earlier(again, group)
        differing += _differing(f"{where}groups.{number}", _logged(group), _logged(again))
        differing += [
            f"{where}groups.{number}.runs: run {run.id} is not number {place}, or its logs are not in {run.log_dir}"
            for place, run in enumerate(group.runs, 1)
            if run.id != place or Path(run.log_dir).name != str(place)
        ]
    differing += [f"{where}{name} is of no run in the report" for name in _left_out(audit, folder)]
    if (
        not audit.interrupted
        and not any(type(one).__name__ in _STOPS for one in audit.warnings)
        and type(audit) is Audit
    ):
        said = verdict.of_groups(group.verdict for group in audit.groups)
        differing += _differing(f"{where}verdict", audit.verdict, said)
    elif type(audit) is not Audit:
        kind = type(audit).__struct_config__.tag
        open_.append(f"{where}the search of `detaudit {kind}` beside its last runs")
    known = {name: audit.environment.get(name) for name in shown}
    if any(shown.values()):
        differing += _differing(f"{where}environment", known, shown)
    return differing, open_


def _left_out(audit: Audit, folder: Path) -> Iterator[str]:
    """Yield the folders of runs that the report does not have."""
    known = {logs_of(run, folder) for group in audit.groups for run in group.runs}
    for path in sorted((folder / "runs").glob("*/*")) if type(audit) is Audit else ():
        if path.name.isdecimal() and path.is_dir() and path not in known:
            yield str(path.relative_to(folder))


_STOPS = ("AuditStopped", "RunsFailAlike", "RunsLeftNothing")


def _judged(audit: Audit, group: Group, folder: Path, shown: dict[str, Any]) -> Group:
    """Return a group, judged again from the logs of its runs; ``shown`` gets the versions that they name."""
    read = [log.read_run(logs_of(run, folder)) for run in group.runs]
    cwd = _working_folder(read, audit.code)
    planned = group.planned_runs or len(group.runs)
    early = len(shorter(group.runs)) if planned == len(group.runs) else 0
    extra = group.left_state is not None and group.left_state.run > 0
    recipe = Recipe(name=group.recipe.name, seed=group.recipe.seed, flags=tuple(_flags(group.recipe.flags)))
    settings = Settings(
        target=_target(audit.target),
        recipes=(recipe,),
        runs=max(1, planned - early - extra),
        out=folder,
        mark="",
        cwd=cwd,
        outer={},
    )
    again = GroupInProgress(plan_group(settings, recipe, SharedWorkspace(cwd), {}), cwd)
    for run, processes in zip(group.runs, read, strict=True):
        logs = logs_of(run, folder)
        environment.add_processes(shown, processes)
        if run.through is not None:
            cut(processes, run.through)
        outputs = files.kept(logs) if run.through is None and run.status is not Status.STOPPED else None
        trained = recorded(processes) if log.matching(processes, settings.target.expected_argument) else ()
        record = record_of((*trained, *_unhooked(audit, run, logs)), outputs)
        interrupted = any(type(error).__name__ == "Interrupted" for error in run.errors)
        fresh = replace(
            run,
            steps=record.steps,
            ranks=() if interrupted else record.ranks,
            saved=files.listed(outputs) if outputs is not None else (),
            stderr_tail=tail(logs / "stderr.log") if run.stderr_tail else (),
            first_difference=None,
            reference=None,
            result=None,
        )
        again.add(fresh, processes, record)
    if group.left_state is not None:
        again.settle(group.left_state)
    return again.result()


def _unhooked(audit: Audit, run: Run, logs: Path) -> Iterator[Training]:
    """Yield what a run showed without the recorder: printed losses, and the files that --artifact named."""
    for rank in run.ranks:
        if rank.framework == Stage.ARTIFACT:
            final = FinalState(digest=rank.digest, sum=rank.sum_of_weights)
            digests = {Stage.ARTIFACT: {0: tuple(f"{file.digest} {file.path}" for file in run.artifacts)}}
            yield Training(framework=rank.framework, digests=digests, final=final)
        elif rank.framework == Stage.STDOUT and audit.loss_pattern is not None:
            reading = printed.read(logs / "stdout.log", compiled(audit.loss_pattern))
            if reading.training is not None:
                yield reading.training


def _working_folder(runs: Sequence[Sequence[log.Process]], code: Mapping[str, str]) -> Path:
    """Return the folder that the runs had, by which files are named in the report."""
    loaded = (file for run in runs for one in run if one.settings for file in one.settings.files)
    for file in loaded:
        for name in code:
            if file.endswith("/" + name):
                return Path(file[: -len(name) - 1] or "/")
    return Path("/")


def _flags(names: Sequence[str]) -> Iterator[Any]:
    catalogue = load_catalogue()
    for name in names:
        try:
            yield catalogue.get(name)
        except UsageError:
            continue


def _target(words: Sequence[str]) -> Target:
    if words and words[0].endswith(SCRIPTS):
        return Target(arguments=tuple(words[1:]), script=words[0])
    if len(words) > 1 and words[0] == "-m":
        return Target(arguments=tuple(words[2:]), module=words[1])
    return Target(arguments=tuple(words) or ("python",))


def _with_earlier(again: Group, group: Group) -> Group:
    """Return what was judged again with the earlier runs that a group counts."""
    runs, differing = (sum(getattr(one, name) for one in group.earlier) for name in ("runs", "differing"))
    again = replace(again, earlier=group.earlier)
    if differing:
        return replace(again, verdict=Verdict.INCONCLUSIVE, reason=group.reason)
    surer = verdict.confidence(again.compared + runs) if again.confidence is not None else None
    return replace(again, confidence=surer)


def _logged(group: Group) -> dict[str, Any]:
    """Return what of a group logs show."""
    shown: dict[str, Any] = msgspec.to_builtins(group)
    for name in TAKEN["group"]:
        shown.pop(name, None)
    for run in shown["runs"]:
        for name in TAKEN["of_run"]:
            run.pop(name, None)
    return shown


def _differing(where: str, said: object, shown: object) -> list[str]:
    """Return a sentence for each value of a report that is another one in the logs."""
    return [
        f"{path}: {_short(a)} in the report, {_short(b)} from the logs"
        for path, a, b in values(where, msgspec.to_builtins(said), msgspec.to_builtins(shown))
    ]


def values(where: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the paths at which two nested values differ, with what is there."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted({*a, *b}):
            yield from values(f"{where}.{name}" if where else str(name), a.get(name), b.get(name))
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for number, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from values(f"{where}.{number}", one, other)
    elif a != b:
        yield where, a, b


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
