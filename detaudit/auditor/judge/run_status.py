"""What one run amounts to: did it finish, was it recorded, and if not, why not."""

import signal
from collections.abc import Sequence
from pathlib import Path

from detaudit.auditor.evidence.event_logs import Process, matching
from detaudit.auditor.evidence.unhooked import Unhooked
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import Run, RunRecord, Status, Training, record_of

TAIL_LINES = 15
TAIL_BYTES = 16384

LOOKED_FOR = (
    "looked for: a backward pass or an optimizer step in torch, GradientTape.gradient in TensorFlow, an optimizer "
    "of tf.compat.v1 in a session, grad or value_and_grad in JAX, Keras on any of them, a call of detaudit.record"
)


def recorded(processes: Sequence[Process]) -> tuple[Training, ...]:
    """Return all trainings of a run, in the order of its processes."""
    return tuple(training for process in processes for training in process.trained)


def compared(spec: RunSpec, processes: Sequence[Process], unhooked: Sequence[Training] = ()) -> RunRecord:
    """Return what a run is compared by: what was recorded in its target, then what it showed without a hook."""
    return record_of((*(recorded(processes) if matching(processes, spec.expected) else ()), *unhooked))


def judge(number: int, spec: RunSpec, outcome: RunOutcome, processes: Sequence[Process], unhooked: Unhooked) -> Run:
    """Return what the run with this number amounts to."""
    status, problem = _status(spec, outcome, processes, unhooked)
    record = compared(spec, processes, unhooked.parts)
    return Run(
        id=number,
        status=status,
        exit_code=outcome.exit_code,
        wall_s=round(outcome.wall_s, 3),
        steps=max((part.steps for part in record.parts), default=0),
        ranks=record.ranks,
        problem=problem,
        stderr_tail=() if status is Status.OK else tail(spec.folder / "stderr.log"),
        warnings=(*_warnings(outcome, processes), *unhooked.warnings),
        logs=str(spec.folder),
        artifacts=unhooked.artifacts,
    )


def stopped(number: int, spec: RunSpec) -> Run:
    """Return the run that was under way at an interruption."""
    return Run(
        id=number,
        status=Status.STOPPED,
        exit_code=None,
        wall_s=0.0,
        steps=0,
        problem="interrupted",
        logs=str(spec.folder),
    )


def ended(number: int, spec: RunSpec, processes: Sequence[Process], wall_s: float, problem: str) -> Run:
    """Return a run that was ended because it had shown enough; what it recorded up to there counts."""
    record = compared(spec, processes)
    return Run(
        id=number,
        status=Status.STOPPED,
        exit_code=None,
        wall_s=round(wall_s, 3),
        steps=max((part.steps for part in record.parts), default=0),
        ranks=record.ranks,
        problem=problem,
        logs=str(spec.folder),
    )


def _status(
    spec: RunSpec, outcome: RunOutcome, processes: Sequence[Process], unhooked: Unhooked
) -> tuple[Status, str | None]:
    trainings = recorded(processes)
    if outcome.timed_out:
        at = f"it was at step {max((one.steps for one in trainings), default=0)}"
        if trainings and all(one.final for one in trainings):
            at = "the training had finished, and the process hung at its exit (a thread that never ends?)"
        return Status.TIMEOUT, f"did not end within {spec.timeout:g} s; {at}"
    if outcome.exit_code:
        return Status.FAILED, _exit_words(outcome.exit_code)
    unrecorded = unhooked.problem or _unrecorded(processes, spec, shown=bool(unhooked.parts))
    return (Status.NO_RECORD, unrecorded) if unrecorded else (Status.OK, None)


def _exit_words(code: int) -> str:
    if code > 0:
        return f"the script failed with exit status {code}"
    try:
        return f"the script was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"the script was killed by signal {-code}"


def _unrecorded(processes: Sequence[Process], spec: RunSpec, shown: bool) -> str:
    """Return why an orderly end left nothing to compare, ``""`` if it did leave something.

    What was ``shown`` without a hook needs no recorder, but does not mend a record that was cut off.
    """
    if not matching(processes, spec.expected):
        unloaded = (
            f"nothing could be recorded: the Python that ran {spec.expected or spec.argv[0]} did not load "
            "the recorder. It was started with -I, -E or -S, or PYTHONPATH was replaced instead of added to, or it "
            "is no Python at all"
        )
        return "" if shown else unloaded
    trained = [process for process in processes if process.trained]
    if not trained and not shown and any(process.probes for process in processes):
        return "" if all(p.ended for p in processes if p.probes) else "the record of the probes was cut off"
    if not trained and not shown:
        seen = sorted({f"{f.name} {f.version}" for process in processes for f in process.frameworks})
        imported = f"imported: {', '.join(seen)}" if seen else "no framework was imported"
        return f"nothing was trained that detaudit can see ({imported}; {LOOKED_FOR})"
    for process in trained:
        if not process.ended or any(training.final is None for training in process.trained):
            return (
                f"the record of process {process.hello.pid} was cut off: its disk is full, or it ended in a way that "
                "Python does not see (exec, a crash in a library, a kill by its parent)"
            )
    return ""


def _warnings(outcome: RunOutcome, processes: Sequence[Process]) -> list[str]:
    troubles = {f"the recorder failed at {t.where}: {t.error}" for process in processes for t in process.troubles}
    left = f"left running, and ended so that the next run starts alike: {'; '.join(outcome.leftovers)}"
    return sorted(troubles) + ([left] if outcome.leftovers else [])


def tail(path: Path) -> tuple[str, ...]:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(text.rstrip().splitlines()[-TAIL_LINES:])
