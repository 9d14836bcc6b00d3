"""What one run shows: finished, recorded, and if not, why not; how far runs are comparable."""

import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from detaudit import redact, wire
from detaudit import store as lockfile
from detaudit.errors import AuditNotFoundError
from detaudit.launch import Program, RunOutcome, RunSpec
from detaudit.model import (
    FITTED,
    UNHOOKED,
    Outputs,
    Run,
    RunError,
    RunRecord,
    Stage,
    Status,
    Training,
    Warning,
    record_of,
)
from detaudit.model.problems import (
    CallUnseen,
    Failed,
    FitUndigested,
    InputExpected,
    Killed,
    LogIncomplete,
    ModuleMissing,
    NoTraining,
    ProbesIncomplete,
    ProcessUnseen,
    RanksUnseen,
    RecorderMismatch,
    RecorderNotLoaded,
    TimedOut,
    Unseen,
)
from detaudit.model.record import last_step, through
from detaudit.model.warnings import ProcessesKilled, RanksRestarted, RecorderFailed
from detaudit.runs import log
from detaudit.runs.files import Unhooked, listed
from detaudit.runs.log import Process, matching, trainings

# Find what may have trained in a run without a record.


_SHOWN = 120
_MOST_RANKS = 1000

_SCRIPT = "script"
"""The framework of what a script records itself, with detaudit.record_weights."""


def unseen(outcome: RunOutcome, processes: Sequence[Process], *, artifacts: bool = False) -> tuple[Unseen, ...]:
    """Return the programs with a framework, and the ranks of a launcher, that have no event log, each once.

    Return also the calls that a recorder could not follow, unless the user has ``artifacts`` compared.
    """
    calls = () if artifacts else _calls(processes)
    return tuple(dict.fromkeys((*_programs(outcome, processes), *_ranks(processes), *calls)))


def _programs(outcome: RunOutcome, processes: Sequence[Process]) -> Iterator[ProcessUnseen]:
    recorded = {process.hello.program for process in processes}
    pids = {process.hello.pid for process in processes}
    for program in outcome.programs:
        if program.addresses not in recorded if program.addresses else program.pid not in pids:
            command = " ".join(redact.command(program.command))[:_SHOWN]
            yield ProcessUnseen(command=command, framework=program.framework, why=_why(program))


def _why(program: Program) -> Literal["isolated", "environment", "path", "unknown"]:
    for argument in program.command[1:]:
        if not argument.startswith("-") or argument in ("-c", "-m"):
            break
        if not argument.startswith("--") and {*argument} & {*"IES"}:
            return "isolated"
    if not program.has_variables:
        return "environment"
    return "unknown" if program.has_path else "path"


def _ranks(processes: Sequence[Process]) -> Iterator[RanksUnseen]:
    if not any(process.trained and process.hello.rank is not None for process in processes):
        return
    world = max((process.hello.world or 0 for process in processes), default=0)
    recorded = {process.hello.rank for process in processes}
    missing = tuple(islice((rank for rank in range(world) if rank not in recorded), _MOST_RANKS))
    if missing:
        yield RanksUnseen(ranks=missing, world=world)


def _calls(processes: Sequence[Process]) -> Iterator[CallUnseen]:
    """Yield what the recorder could not follow, unless the script recorded weights of that process itself."""
    for process in processes:
        own = any(one.framework == _SCRIPT and one.final and one.final.digest for one in process.trained)
        if not own and not process.replaced:
            yield from (CallUnseen(framework=line.fw, call=line.call) for line in process.unseen)


# What one run shows: did it finish, was it recorded, and if not, why not.


TAIL_LINES = 15
TAIL_BYTES = 16384


def recorded(processes: Sequence[Process]) -> tuple[Training, ...]:
    """Return all trainings of a run, in the order of its processes; fits come last, so that they take no rank."""
    return tuple(training for _, training in trainings(processes))


def compared(
    spec: RunSpec, processes: Sequence[Process], unhooked: Sequence[Training] = (), outputs: Outputs | None = None
) -> RunRecord:
    """Return what of a run is compared: what was recorded in its target, then what needs no hook."""
    return record_of((*(recorded(processes) if matching(processes, spec.expected) else ()), *unhooked), outputs)


def judge(
    number: int,
    spec: RunSpec,
    outcome: RunOutcome,
    processes: Sequence[Process],
    unhooked: Unhooked,
    outputs: Outputs | None = None,
) -> Run:
    """Return what the run with this number shows."""
    missed = unseen(outcome, processes, artifacts=bool(unhooked.artifacts))
    status, errors = _status(spec, outcome, processes, unhooked)
    if missed and any(isinstance(error, NoTraining | RecorderNotLoaded) for error in errors):
        errors = missed  # which says more
    record = compared(spec, processes, unhooked.parts)
    return Run(
        id=number,
        status=status,
        exit_code=outcome.exit_code,
        wall_s=round(outcome.wall_s, 3),
        steps=record.steps,
        ranks=record.ranks,
        errors=errors,
        unseen=missed,
        stderr_tail=() if status is Status.OK else tail(spec.folder / "stderr.log"),
        warnings=(*_warnings(number, outcome, processes), *(replace(one, run=number) for one in unhooked.warnings)),
        log_dir=spec.log_dir,
        artifacts=unhooked.artifacts,
        saved=listed(outputs) if outputs is not None else (),
    )


_LAST = 3
"""Lines at the end of stderr that may say why a run failed: a note on how to see more may follow the error."""

_EXISTS = re.compile(
    r"(?<!not )(?<!n't )already (?:exist|present|been created)|(?<!no )(?<!such )file exists"
    r"|\b(?:array|group|node) exists in\b|(?:directory|folder)\b[^\n]*\bnot empty",
    re.IGNORECASE,
)


def says_it_exists(words: Sequence[str], files: Iterable[str]) -> bool:
    """Return whether the last words of a run say that something exists, or name one of these files or folders.

    A name without a dot or a slash may be a word of any sentence, unless it is in quotes or brackets.
    """
    last = "\n".join([line for line in words if line.strip() and not line[0].isspace()][-_LAST:])  # no line of code
    names = ("|".join(re.escape(name) for name in files if bool({*"./"} & {*name}) is known) for known in (True, False))
    known, word = (f"(?:{one})" if one else "(?!)" for one in names)
    named = re.search(rf"(?<![\w.-]){known}(?![\w-])|['\"(\[<]{word}['\")\]>/]", last)
    return bool(named or _EXISTS.search(last))


def ended_after(number: int, spec: RunSpec, outcome: RunOutcome, processes: Sequence[Process], through: int) -> Run:
    """Return a run that did the last wanted step, however it ended then; ``processes`` were cut there."""
    record = compared(spec, processes)
    problem = _unreadable(processes)
    if problem is None and not matching(processes, spec.expected):
        problem = RecorderNotLoaded(program=spec.expected or spec.argv[0])
    return Run(
        id=number,
        status=Status.NOT_RECORDED if problem else Status.ENDED,
        exit_code=outcome.exit_code,
        wall_s=round(outcome.wall_s, 3),
        steps=record.steps,
        ranks=record.ranks,
        errors=(problem,) if problem else (),
        unseen=unseen(outcome, processes),
        warnings=tuple(_warnings(number, outcome, processes)),
        log_dir=spec.log_dir,
        through=through,
    )


def ended(number: int, spec: RunSpec, processes: Sequence[Process], wall_s: float, error: RunError) -> Run:
    """Return a run that was ended early; what it recorded until then counts."""
    record = compared(spec, processes)
    return Run(
        id=number,
        status=Status.STOPPED,
        exit_code=None,
        wall_s=round(wall_s, 3),
        steps=record.steps,
        ranks=record.ranks,
        errors=(error,),
        log_dir=spec.log_dir,
    )


def _status(
    spec: RunSpec, outcome: RunOutcome, processes: Sequence[Process], unhooked: Unhooked
) -> tuple[Status, tuple[RunError, ...]]:
    trained = recorded(processes)
    if outcome.timed_out:
        step = max((one.steps for one in trained), default=0)
        hung = bool(trained) and all(one.final for one in trained)
        return Status.TIMEOUT, (TimedOut(seconds=spec.timeout or 0.0, step=step, hung=hung),)
    if outcome.exit_code:
        return Status.FAILED, (_exit(outcome), *_said(tail(spec.folder / "stderr.log")))
    if unhooked.errors:
        return Status.NOT_RECORDED, unhooked.errors
    unrecorded = _unrecorded(processes, spec, shown=bool(unhooked.parts))
    return (Status.NOT_RECORDED, (unrecorded,)) if unrecorded else (Status.OK, ())


def _exit(outcome: RunOutcome) -> RunError:
    code = outcome.exit_code or 0
    if code > 0:
        return Failed(exit_code=code)
    names = {one.value: one.name for one in signal.Signals}
    return Killed(signal=names.get(-code, str(-code)), out_of_memory=outcome.out_of_memory)


_AT_INPUT = "EOFError: EOF when"
"""How what input() raises begins. Files that end too early raise an EOFError too, with another text."""


def _said(stderr: Sequence[str]) -> list[RunError]:
    """Return what the last exception on stderr says of why a run failed, if that is known."""
    last = next((line for line in reversed(stderr) if line.startswith((_AT_INPUT, "ModuleNotFoundError"))), "")
    if last.startswith(_AT_INPUT):
        return [InputExpected()]
    named = re.match(r"ModuleNotFoundError: No module named '([\w.]+)'", last)
    return [ModuleMissing(module=named[1])] if named else []


def _unrecorded(processes: Sequence[Process], spec: RunSpec, shown: bool) -> RunError | None:
    """Return why a run that ended in order left nothing to compare, None if it left something.

    What was ``shown`` without a hook needs no recorder, but does not make up for an event log that was cut off.
    """
    problem = _unreadable(processes)
    if problem is not None:
        return problem
    torn = next((process for process in processes if process.torn and not process.replaced), None)
    if torn is not None:
        return LogIncomplete(pid=torn.hello.pid)
    if not matching(processes, spec.expected):
        return None if shown else RecorderNotLoaded(program=spec.expected or spec.argv[0])
    trained = [process for process in processes if process.trained]
    if not trained and not shown:
        if any(process.probes for process in processes):
            return None if all(one.ended for one in processes if one.probes) else ProbesIncomplete()
        imported = sorted({f"{one.name} {one.version}" for process in processes for one in process.frameworks})
        return NoTraining(imported=tuple(imported))
    for process in trained:
        if not process.ended or any(training.final is None for training in process.trained):
            return LogIncomplete(pid=process.hello.pid)
    return None


def _unreadable(processes: Sequence[Process]) -> RunError | None:
    """Return why what processes recorded cannot be compared, None if it can."""
    other = next((one.hello for one in processes if one.hello.schema != wire.SCHEMA), None)
    if other is not None:
        return RecorderMismatch(program=" ".join(other.argv[1:2]), schema=other.schema)
    undigested = next((one for process in processes for one in process.undigested), None)
    return FitUndigested(fit=undigested.what, detail=undigested.why) if undigested is not None else None


def _warnings(number: int, outcome: RunOutcome, processes: Sequence[Process]) -> list[Warning]:
    troubles = sorted({(one.where, one.error) for process in processes for one in process.troubles})
    warnings: list[Warning] = [RecorderFailed(run=number, where=where, error=error) for where, error in troubles]
    last = max((process.hello.attempt for process in processes if process.trained), default=0)
    if last:
        warnings.append(RanksRestarted(run=number, times=last))
    if outcome.left_processes:
        warnings.append(ProcessesKilled(run=number, commands=tuple(outcome.left_processes)))
    return warnings


def tail(path: Path) -> tuple[str, ...]:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(map(redact.text, text.rstrip().splitlines()[-TAIL_LINES:]))


# Cut what a run recorded at the step after which it was ended (--until).


def reached(processes: Iterable[Process], step: int) -> bool:
    """Return whether any training got to this step. Fits and calls of models have no steps of this kind."""
    return any(training.steps >= step for training in _trained(processes))


def common_step(processes: Sequence[Process]) -> int:
    """Return the last step that all trainings did and after which their weights were recorded, 0 if there is none."""
    last = min((training.steps for training in _trained(processes)), default=0)
    return min((_recorded(training, last) for training in _trained(processes)), default=0)


def training_processes(processes: Iterable[Process]) -> int:
    """Return how many processes trained with steps of this kind."""
    return sum(bool(_trained([process])) for process in processes)


def cut(processes: Iterable[Process], step: int) -> None:
    """Leave nothing in these processes of what they did after a step.

    Of the probes of that step some may have been written and some not, so those before it are kept.
    """
    for process in processes:
        process.trainings = tuple(training.through(step) for training in process.trainings)
        process.probes = [probe for probe in process.probes if probe.step is not None and probe.step < step]


def _trained(processes: Iterable[Process]) -> list[Training]:
    return [
        training
        for process in processes
        for training in process.trained
        if not training.is_inference and training.framework not in FITTED
    ]


def _recorded(training: Training, step: int) -> int:
    """Return the last step up to ``step`` at which the weights were recorded; ``step`` if they never were."""
    updates = through(step, training.digests.get(Stage.UPDATE, {}))
    return last_step(updates) if updates else step


_WHERE_RUNS_ARE = 3
"""The last parts of a run's folder: runs/<recipe>/<number>."""


def logs_of(run: Run, folder: Path) -> Path:
    """Return where the logs of a run of the audit in ``folder`` are.

    Older versions wrote where they were then; but the folder may have been moved, and a different one be there now.
    """
    moved = folder.joinpath(*Path(run.log_dir).parts[-_WHERE_RUNS_ARE:])
    return moved if moved.is_dir() else folder / run.log_dir


def trained(run: Run, logs: Path) -> tuple[Training, ...]:
    """Return the trainings of a run, read from its event logs again."""
    ranks = tuple(rank for rank in run.ranks if rank.framework not in UNHOOKED or rank.framework == Stage.RETURNED)
    if not ranks:
        return ()
    processes = log.read_run(logs)
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
