"""Why a run is not compared, and why a group is inconclusive."""

from collections.abc import Iterable
from typing import TypeAlias

from detaudit import wire
from detaudit.compat import assert_never
from detaudit.model import Reason, RunError
from detaudit.model.fact import count
from detaudit.model.problems import (
    ArtifactMissing,
    ArtifactsNotWritten,
    ArtifactUnusable,
    CallUnseen,
    CoresReduced,
    DeviceShared,
    EndedAfterStep,
    EndedAtDifference,
    Failed,
    FitUndigested,
    InputExpected,
    Interrupted,
    Killed,
    LogIncomplete,
    LossPatternFlood,
    LossPatternMisfit,
    LossPatternUnmatched,
    MachinesRunOnce,
    ModuleMissing,
    NoTraining,
    OnlyLosses,
    OnlyProbes,
    OutputsOpen,
    ProbesIncomplete,
    ProcessUnseen,
    RanksUnseen,
    RecorderMismatch,
    RecorderNotLoaded,
    RunLost,
    RunsCrowded,
    RunsMissing,
    RunUnusable,
    SingleRun,
    StateUnsettled,
    StdoutTruncated,
    StdoutUnreadable,
    TimedOut,
    TrainingsUnseen,
    Unseen,
)
from detaudit.report.messages import outputs
from detaudit.report.messages.state import unsettled
from detaudit.report.messages.wording import both, duration, shortened

LOOKED_FOR = (
    "a backward pass or an optimizer step in torch, GradientTape.gradient in TensorFlow, an optimizer of tf.compat.v1 "
    "in a session, grad or value_and_grad in JAX, Keras on any of them, a fit in scikit-learn, XGBoost, LightGBM or "
    "CatBoost, a call of detaudit.record, or calls of models in torch or TensorFlow"
)
"""What the recorder takes for a training."""

_Ended: TypeAlias = (
    Interrupted
    | EndedAtDifference
    | EndedAfterStep
    | TimedOut
    | Failed
    | InputExpected
    | ModuleMissing
    | Killed
    | RunLost
)
_NotRecorded: TypeAlias = (
    RecorderNotLoaded | RecorderMismatch | ProbesIncomplete | NoTraining | FitUndigested | LogIncomplete
)
_Losses: TypeAlias = LossPatternUnmatched | LossPatternMisfit | LossPatternFlood | StdoutTruncated | StdoutUnreadable
_Artifacts: TypeAlias = ArtifactsNotWritten | ArtifactMissing | ArtifactUnusable


def reason(found: Reason) -> str:
    """Return why a group is inconclusive."""
    match found:
        case RunUnusable(run=run, errors=problems):
            return f"run {run}: {errors(problems)}"
        case SingleRun():
            return "a single run has nothing to compare with; use --runs 2 or more"
        case OnlyProbes():
            return "the probes match, but no training was recorded, and matching probes prove nothing on their own"
        case OnlyLosses():
            return (
                "the losses match, but no weights were recorded, and matching losses prove nothing on their own; "
                "use --artifact to compare a file the script saves them to"
            )
        case TrainingsUnseen(run=run, unseen=found_):
            return f"what was recorded matches, but run {run} may have trained more: {errors(found_)}"
        case RunsMissing(finished=finished, planned=planned):
            return f"{finished:,} of {planned:,} runs finished"
        case OutputsOpen(first=first, more=more):
            return outputs.open_reason(first, more)
        case MachinesRunOnce(machines=machines):
            if len(machines) == 1:
                return f"machine {machines[0]} did one run, which does not show whether it repeats its result; do two"
            each = f"machines {both([str(one) for one in machines])} did one run each"
            return f"{each}, which does not show whether they repeat their results; do two on each"
        case StateUnsettled(state=state):
            return unsettled(state)
        case _:
            return _crowded(found)


def _crowded(found: RunsCrowded | CoresReduced | DeviceShared) -> str:
    match found:
        case RunsCrowded(jobs=jobs, threads=threads, cores=cores):
            return (
                f"{count(jobs, 'run')} at once with {count(threads, 'thread')} each shared {count(cores, 'CPU core')}, "
                f"which can hide a race, so matching runs do not count; use --jobs {max(1, cores // threads)}"
            )
        case CoresReduced(jobs=jobs, cores=cores):
            return (
                f"{count(jobs, 'run')} at once had 1 of {count(cores, 'CPU core')} each, so the framework used 1 "
                "thread, which hides races between threads, so matching runs do not count; use --jobs 1, or, if it "
                "always trains on 1 thread, set OMP_NUM_THREADS=1 (TF_NUM_INTRAOP_THREADS=1 for TensorFlow)"
            )
        case DeviceShared(jobs=jobs, device=device):
            return (
                f"{count(jobs, 'run')} at once {f'shared the device {device}' if device else 'may have shared a GPU'}, "
                "which can hide a race, so matching runs do not count; use --devices to give each its own, or --jobs 1"
            )
        case _:
            assert_never(found)


def errors(found: Iterable[RunError]) -> str:
    """Return all that is wrong with a run."""
    return "; ".join(map(error, found))


def error(found: RunError) -> str:
    """Return one thing that is wrong with a run."""
    if isinstance(found, _Ended):
        return _ended(found)
    if isinstance(found, _NotRecorded):
        return _not_recorded(found)
    if isinstance(found, Unseen):
        return _unseen(found)
    if isinstance(found, _Losses):
        return _losses(found)
    return _artifacts(found)


def _ended(found: _Ended) -> str:
    match found:
        case Interrupted():
            return "interrupted"
        case EndedAtDifference():
            return "ended at its first difference"
        case EndedAfterStep(step=step):
            return f"ended after step {step:,}"
        case TimedOut(seconds=seconds, hung=True):
            return (
                f"timed out after {duration(seconds, 'g')}: the training had ended, but the process did not exit "
                "(a thread may still be running)"
            )
        case TimedOut(seconds=seconds, step=step):
            return f"timed out after {duration(seconds, 'g')}, at step {step:,}"
        case Failed(exit_code=code):
            return f"the script failed with exit status {code}"
        case InputExpected():
            return "it asked for input, and a run has none: pass a file, or arguments, instead"
        case ModuleMissing(module=module):
            return f"it imports {module}, which its Python does not have: install it there, or use --python"
        case Killed(signal=signal, out_of_memory=starved):
            why = ": the kernel ended a process because memory ran out" if starved else ""
            return f"the script was killed by {f'signal {signal}' if signal.isdecimal() else signal}{why}"
        case RunLost(attempts=attempts, reason=reason):
            return f"lost in each of {count(attempts, 'attempt')}: {reason}"
        case _:
            assert_never(found)


def _not_recorded(found: _NotRecorded) -> str:
    match found:
        case RecorderNotLoaded(program=program):
            return (
                f"nothing was recorded: the Python that ran {program} did not load the recorder. It was started with "
                "-I, -E or -S, PYTHONPATH was overwritten, or it is not Python 3.9 or later"
            )
        case RecorderMismatch(program=program, schema=schema):
            return (
                f"{program} loaded the recorder of another version of detaudit (event log version {schema}, here "
                f"{wire.SCHEMA}); use the same version for both, and take the other out of PYTHONPATH"
            )
        case ProbesIncomplete():
            return "the event log with the probes is incomplete: it could not be written, or the process ended abruptly"
        case NoTraining(left=(_, *_) as left, left_by=by, read=read):
            they, did = ("them", "read them and ") if len(left) > 1 else ("it", "read it and ")
            which = both(list(left))
            return (
                f"no training detected: run {by} left {which}, and this run {did if read else ''}trained nothing: use "
                f"--isolate, or remove {they} before each run"
            )
        case NoTraining(imported=()):
            return (
                "no training detected: none of torch, TensorFlow, JAX, scikit-learn, XGBoost, LightGBM and CatBoost "
                "was imported, and detaudit.record() was not called"
            )
        case NoTraining(imported=imported):
            return f"no training detected (imported: {', '.join(imported)}; looked for: {LOOKED_FOR})"
        case FitUndigested(fit=fit, detail=detail):
            return (
                f"what {fit}() learned cannot be compared ({detail}); leave that attribute out in the __getstate__ of "
                "its class, as for pickle"
            )
        case LogIncomplete(pid=pid):
            return (
                f"the event log of process {pid} is incomplete: it could not be written (a full disk, a limit such "
                "as ulimit -f), or the process ended abruptly (exec, native crash, killed by its parent)"
            )
        case _:
            assert_never(found)


_KEPT_OUT = {
    "isolated": "it was started with -I, -E or -S; leave that out",
    "environment": "it was started with different environment variables; pass those of its parent on",
    "path": "PYTHONPATH was overwritten; extend it instead: PYTHONPATH=DIR:$PYTHONPATH",
    "unknown": "it is not a Python that loads sitecustomize",
}
"""What keeps the recorder out of a process, and how to let it in."""


def _unseen(found: Unseen) -> str:
    match found:
        case ProcessUnseen(command=command, framework=framework, why=why):
            return f"{command!r} loaded {framework} without the recorder: {_KEPT_OUT[why]}"
        case RanksUnseen(ranks=ranks, world=world):
            which = f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
            return f"no event log of {which} of {world}: the launcher must pass its environment variables on"
        case CallUnseen(framework=framework, call=call):
            return (
                f"what {call} trains in {framework} is not recorded; pass its result to detaudit.record_weights, or "
                "save it and name the file with --artifact"
            )
        case _:
            assert_never(found)


def _losses(found: _Losses) -> str:
    match found:
        case LossPatternUnmatched(pattern=pattern, last_line=last):
            stdout = f"its last line is {last!r}" if last else "it is empty"
            return f"--loss-pattern '{pattern}' matched nothing on stdout ({stdout})"
        case LossPatternMisfit(pattern=pattern, group="step", text=text):
            return f"--loss-pattern '{pattern}' matched {text!r} for the step, which is not a whole number"
        case LossPatternMisfit(pattern=pattern, text=text):
            return f"--loss-pattern '{pattern}' matched {text!r}, which is not a number"
        case LossPatternFlood(pattern=pattern, limit=limit):
            return f"--loss-pattern '{pattern}' matched more than {limit:,} times"
        case StdoutTruncated():
            return "stdout was truncated, so losses before the last MiB are lost"
        case StdoutUnreadable(detail=detail):
            return f"stdout cannot be read: {detail}"
        case _:
            assert_never(found)


def _artifacts(found: _Artifacts) -> str:
    match found:
        case ArtifactsNotWritten(files=files, more=more):
            they = "they" if len(files) + more > 1 else "it"
            return f"{shortened(files, more)}: not written by this run ({they} already existed)"
        case ArtifactMissing(pattern=pattern, folder=folder):
            hint = f"; it is a folder, use '{pattern.rstrip('/')}/*'" if folder else ""
            return f"--artifact {pattern}: the run wrote no such file{hint}"
        case ArtifactUnusable(path=path, detail=detail):
            return f"{path} {detail}"
        case _:
            assert_never(found)
