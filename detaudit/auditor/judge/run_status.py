"""What one run shows: did it finish, was it recorded, and if not, why not."""

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from detaudit import redact, wire
from detaudit.auditor.evidence import event_logs
from detaudit.auditor.evidence.event_logs import Process, matching, trainings
from detaudit.auditor.evidence.outputs import listed
from detaudit.auditor.evidence.unhooked import Unhooked
from detaudit.auditor.judge.unseen import unseen
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import Outputs, Run, RunError, RunRecord, Status, Training, Warning, record_of
from detaudit.model.problems import (
    Failed,
    FitUndigested,
    InputExpected,
    Interrupted,
    Killed,
    LogIncomplete,
    ModuleMissing,
    NoTraining,
    ProbesIncomplete,
    RecorderMismatch,
    RecorderNotLoaded,
    TimedOut,
)
from detaudit.model.warnings import ProcessesKilled, RanksRestarted, RecorderFailed

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


def stopped(number: int, spec: RunSpec) -> Run:
    """Return the run that an interruption stopped, with the steps that it did; nothing of it is compared."""
    found = ended(number, spec, event_logs.read_run(spec.folder), 0.0, Interrupted())
    return replace(found, ranks=())


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


def _said(stderr: Sequence[str]) -> list[RunError]:
    """Return what the last exception on stderr says of why a run failed, if that is known."""
    last = next((line for line in reversed(stderr) if line.startswith(("EOFError", "ModuleNotFoundError"))), "")
    if last.startswith("EOFError"):
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
    found: list[Warning] = [RecorderFailed(run=number, where=where, error=error) for where, error in troubles]
    last = max((process.hello.attempt for process in processes if process.trained), default=0)
    if last:
        found.append(RanksRestarted(run=number, times=last))
    if outcome.left_processes:
        found.append(ProcessesKilled(run=number, commands=tuple(outcome.left_processes)))
    return found


def tail(path: Path) -> tuple[str, ...]:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(map(redact.text, text.rstrip().splitlines()[-TAIL_LINES:]))
