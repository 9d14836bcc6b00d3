"""What one run amounts to: did it finish, was it recorded, and if not, why not."""

import signal
from collections.abc import Sequence
from pathlib import Path

from detaudit.auditor.evidence.event_logs import Process, Stream, matching
from detaudit.auditor.evidence.unhooked import Outside
from detaudit.auditor.judge.streams import streams_of
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import RankRecord, Run, Status, as_number

TAIL_LINES = 15
TAIL_BYTES = 16384

LOOKED_FOR = (
    "looked for: a backward pass or an optimizer step in torch, GradientTape.gradient in TensorFlow, an optimizer "
    "of tf.compat.v1 in a session, grad or value_and_grad in JAX, Keras on any of them, a call of detaudit.record"
)


def compared(spec: RunSpec, processes: Sequence[Process], outside: Sequence[Stream]) -> list[Stream]:
    """Return what a run is compared by: what was recorded in its target, then what it showed without a hook."""
    return [*(streams_of(processes) if matching(processes, spec.expected) else ()), *outside]


def judge(number: int, spec: RunSpec, outcome: RunOutcome, processes: Sequence[Process], outside: Outside) -> Run:
    """Return what the run with this number amounts to."""
    status, problem = _status(spec, outcome, processes, outside)
    streams = compared(spec, processes, outside.streams)
    return Run(
        id=number,
        status=status,
        exit_code=outcome.exit_code,
        wall_s=round(outcome.wall_s, 3),
        steps=max((stream.steps for stream in streams), default=0),
        ranks=tuple(rank_record(rank, stream) for rank, stream in enumerate(streams)),
        problem=problem,
        stderr_tail=() if status is Status.OK else tail(spec.folder / "stderr.log"),
        warnings=(*_warnings(outcome, processes), *outside.warnings),
        logs=str(spec.folder),
        artifacts=outside.artifacts,
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
    streams = compared(spec, processes, ())
    return Run(
        id=number,
        status=Status.STOPPED,
        exit_code=None,
        wall_s=round(wall_s, 3),
        steps=max((stream.steps for stream in streams), default=0),
        ranks=tuple(rank_record(rank, stream) for rank, stream in enumerate(streams)),
        problem=problem,
        logs=str(spec.folder),
    )


def _status(
    spec: RunSpec, outcome: RunOutcome, processes: Sequence[Process], outside: Outside
) -> tuple[Status, str | None]:
    streams = streams_of(processes)
    if outcome.timed_out:
        at = f"it was at step {max((s.steps for s in streams), default=0)}"
        if streams and all(stream.final for stream in streams):
            at = "the training had finished, and the process hung at its exit (a thread that never ends?)"
        return Status.TIMEOUT, f"did not end within {spec.timeout:g} s; {at}"
    if outcome.exit_code:
        return Status.FAILED, _exit_words(outcome.exit_code)
    unrecorded = outside.problem or _unrecorded(processes, spec, shown=bool(outside.streams))
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
        if not process.ended or any(stream.final is None for stream in process.trained):
            return (
                f"the record of process {process.hello.pid} was cut off: its disk is full, or it ended in a way that "
                "Python does not see (exec, a crash in a library, a kill by its parent)"
            )
    return ""


def rank_record(rank: int, stream: Stream) -> RankRecord:
    """Return the fingerprints of what was trained, or shown, in this place of a run."""
    final = stream.final
    loss = float.fromhex(final.loss) if final and final.loss else stream.last_loss
    seen = final if final and final.params else None
    return RankRecord(
        rank=rank,
        framework=stream.framework,
        steps=stream.steps,
        sum_of_weights=as_number(float.fromhex(seen.sum) if seen and seen.sum else None),
        final_loss=as_number(loss),
        digest=seen.digest if seen else None,
        devices=seen.devices if seen else (),
    )


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
