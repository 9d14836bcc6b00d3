"""Why a run cannot be compared, and why a group has no verdict."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

from detaudit import wire
from detaudit.model.fact import Fact, both, count, duration, shortened, union
from detaudit.model.files import LeftState
from detaudit.model.outputs import OutputDifference

# Why a run cannot be judged.


class RunError(Fact, frozen=True, kw_only=True):
    """Why a run is not compared, or was ended early."""


class Interrupted(RunError, frozen=True, kw_only=True):
    """The user interrupted it."""

    def text(self) -> str:
        return "interrupted"


class EndedAtDifference(RunError, frozen=True, kw_only=True):
    """It was ended because it differed already."""

    def text(self) -> str:
        return "ended at its first difference"


class EndedAfterStep(RunError, frozen=True, kw_only=True):
    """It was ended because no later step was wanted."""

    step: int

    def text(self) -> str:
        return f"ended after step {self.step:,}"


class TimedOut(RunError, frozen=True, kw_only=True):
    """It was killed after so many seconds; ``hung`` says that its training had ended before."""

    seconds: float
    step: int
    hung: bool

    def text(self) -> str:
        if self.hung:
            return (
                f"timed out after {duration(self.seconds, 'g')}: the training had ended, but the process did not exit "
                "(a thread may still be running)"
            )
        return f"timed out after {duration(self.seconds, 'g')}, at step {self.step:,}"


class Failed(RunError, frozen=True, kw_only=True):
    """The script ended with an exit status other than 0."""

    exit_code: int

    def text(self) -> str:
        return f"the script failed with exit status {self.exit_code}"


class ModuleMissing(RunError, frozen=True, kw_only=True):
    """It imports a ``module`` that its Python does not have."""

    module: str

    def text(self) -> str:
        return f"it imports {self.module}, which its Python does not have: install it there, or use --python"


class InputExpected(RunError, frozen=True, kw_only=True):
    """It asked for input, of which a run has none."""

    def text(self) -> str:
        return "it asked for input, and a run has none: pass a file, or arguments, instead"


class Killed(RunError, frozen=True, kw_only=True):
    """A signal ended the script; ``signal`` is its name, or its number.

    ``out_of_memory``: the kernel killed a process for lack of memory while it went on.
    """

    signal: str
    out_of_memory: bool = False

    def text(self) -> str:
        why = ": the kernel ended a process because memory ran out" if self.out_of_memory else ""
        return f"the script was killed by {f'signal {self.signal}' if self.signal.isdecimal() else self.signal}{why}"


class RunLost(RunError, frozen=True, kw_only=True):
    """The machine that did it was lost, in each of so many attempts; ``reason`` is that of the last."""

    attempts: int
    reason: str

    def text(self) -> str:
        return f"lost in each of {count(self.attempts, 'attempt')}: {self.reason}"


class RecorderNotLoaded(RunError, frozen=True, kw_only=True):
    """The Python that ran ``program`` did not load the recorder."""

    program: str

    def text(self) -> str:
        return (
            f"nothing was recorded: the Python that ran {self.program} did not load the recorder. It was started with "
            "-I, -E or -S, PYTHONPATH was overwritten, or it is not Python 3.9 or later"
        )


class RecorderMismatch(RunError, frozen=True, kw_only=True):
    """The recorder of another version of detaudit was loaded; ``schema`` is that of its event log."""

    program: str
    schema: int

    def text(self) -> str:
        return (
            f"{self.program} loaded the recorder of another version of detaudit (event log version {self.schema}, here "
            f"{wire.SCHEMA}); use the same version for both, and take the other out of PYTHONPATH"
        )


class ProbesIncomplete(RunError, frozen=True, kw_only=True):
    """A process that recorded probes did not end in order."""

    def text(self) -> str:
        return "the event log with the probes is incomplete: it could not be written, or the process ended abruptly"


_FITS = "scikit-learn, XGBoost, LightGBM, CatBoost, statsmodels, arch, Prophet, gensim, lifelines, implicit {word} PyMC"
LOOKED_FOR = (
    "a backward pass or an optimizer step in torch, GradientTape.gradient in TensorFlow, an optimizer of tf.compat.v1 "
    f"in a session, grad or value_and_grad in JAX, Keras on any of them, a fit in {_FITS.format(word='or')}, a call of "
    "detaudit.record, or calls of models in torch, TensorFlow, scikit-learn, XGBoost, LightGBM, CatBoost, "
    "statsmodels, Prophet or ONNX Runtime"
)
"""What the recorder takes for a training."""


class NoTraining(RunError, frozen=True, kw_only=True):
    """Nothing that the recorder hooks was trained; ``imported`` are the frameworks with their versions.

    If an earlier run, ``left_by``, trained something, ``left`` are the first files that it left, and that this one
    ``read`` if it read any.
    """

    imported: tuple[str, ...]
    left: tuple[str, ...] = ()
    left_by: int = 0
    read: bool = False

    def text(self) -> str:
        if self.left:
            they, did = ("them", "read them and ") if len(self.left) > 1 else ("it", "read it and ")
            which = both(list(self.left))
            return (
                f"no training detected: run {self.left_by} left {which}, and this run "
                f"{did if self.read else ''}trained nothing: use --isolate, or remove {they} before each run"
            )
        if not self.imported:
            return (
                f"no training detected: none of torch, TensorFlow, JAX, {_FITS.format(word='and')} was imported, and "
                "detaudit.record() was not called"
            )
        return f"no training detected (imported: {', '.join(self.imported)}; looked for: {LOOKED_FOR})"


class FitUndigested(RunError, frozen=True, kw_only=True):
    """What a ``fit`` learned has no digest; ``detail`` names the attribute and says why."""

    fit: str
    detail: str

    def text(self) -> str:
        return (
            f"what {self.fit}() learned cannot be compared ({self.detail}); leave that attribute out in the "
            "__getstate__ of its class, as for pickle"
        )


class LogIncomplete(RunError, frozen=True, kw_only=True):
    """The event log of a process that trained has no end."""

    pid: int

    def text(self) -> str:
        return (
            f"the event log of process {self.pid} is incomplete: it could not be written (a full disk, a limit such "
            "as ulimit -f), or the process ended abruptly (exec, native crash, killed by its parent)"
        )


class LossPatternUnmatched(RunError, frozen=True, kw_only=True):
    """--loss-pattern matched nothing; ``last_line`` is the last line of stdout."""

    pattern: str
    last_line: str

    def text(self) -> str:
        stdout = f"its last line is {self.last_line!r}" if self.last_line else "it is empty"
        return f"--loss-pattern '{self.pattern}' matched nothing on stdout ({stdout})"


class LossPatternMisfit(RunError, frozen=True, kw_only=True):
    """--loss-pattern ``matched`` a text for a loss or a step, which is no number."""

    pattern: str
    group: Literal["loss", "step"]
    matched: str

    def text(self) -> str:
        if self.group == "step":
            return f"--loss-pattern '{self.pattern}' matched {self.matched!r} for the step, which is not a whole number"
        return f"--loss-pattern '{self.pattern}' matched {self.matched!r}, which is not a number"


class LossPatternFlood(RunError, frozen=True, kw_only=True):
    """--loss-pattern matched more often than ``limit`` times."""

    pattern: str
    limit: int

    def text(self) -> str:
        return f"--loss-pattern '{self.pattern}' matched more than {self.limit:,} times"


class StdoutTruncated(RunError, frozen=True, kw_only=True):
    """It printed more than is kept, so that losses are missing."""

    def text(self) -> str:
        return "stdout was truncated, so losses before the last MiB are lost"


class StdoutUnreadable(RunError, frozen=True, kw_only=True):
    """Its stdout cannot be read; ``detail`` is the system's message."""

    detail: str

    def text(self) -> str:
        return f"stdout cannot be read: {self.detail}"


class ArtifactsNotWritten(RunError, frozen=True, kw_only=True):
    """The files that --artifact names were there before and did not change; ``more`` others are not listed."""

    files: tuple[str, ...]
    more: int = 0

    def text(self) -> str:
        they = "they" if len(self.files) + self.more > 1 else "it"
        return f"{shortened(self.files, self.more)}: not written by this run ({they} already existed)"


class ArtifactMissing(RunError, frozen=True, kw_only=True):
    """No file matches --artifact; ``folder`` says that a folder does."""

    pattern: str
    folder: bool

    def text(self) -> str:
        hint = f"; it is a folder, use '{self.pattern.rstrip('/')}/*'" if self.folder else ""
        return f"--artifact {self.pattern}: the run wrote no such file{hint}"


class ArtifactUnusable(RunError, frozen=True, kw_only=True):
    """A file cannot be compared; ``detail`` is what its reader says."""

    path: str
    detail: str

    def text(self) -> str:
        return f"{self.path} {self.detail}"


class Unseen(RunError, frozen=True, kw_only=True):
    """What may have trained and was not recorded."""


class ProcessUnseen(Unseen, frozen=True, kw_only=True):
    """A program with a framework did not load the recorder; ``why`` says what kept it out, as far as that is known."""

    command: str
    framework: str
    why: Literal["isolated", "environment", "path", "unknown"]

    def text(self) -> str:
        return f"{self.command!r} loaded {self.framework} without the recorder: {_KEPT_OUT[self.why]}"


class RanksUnseen(Unseen, frozen=True, kw_only=True):
    """A launcher started ``world`` ranks, and these have no event log."""

    ranks: tuple[int, ...]
    world: int

    def text(self) -> str:
        which = f"rank{'s' * (len(self.ranks) > 1)} {', '.join(map(str, self.ranks))}"
        return f"no event log of {which} of {self.world}: the launcher must pass its environment variables on"


class CallUnseen(Unseen, frozen=True, kw_only=True):
    """The script called something of a framework that may train, and that the recorder cannot follow."""

    framework: str
    call: str

    def text(self) -> str:
        return (
            f"what {self.call} trains in {self.framework} is not recorded; pass its result to detaudit.record_weights, "
            "or save it and name the file with --artifact"
        )


if TYPE_CHECKING:
    AnyRunError: TypeAlias = RunError
    AnyUnseen: TypeAlias = Unseen
else:
    AnyRunError, AnyUnseen = union(RunError), union(Unseen)


def errors(run_errors: Iterable[RunError]) -> str:
    """Return all that is wrong with a run."""
    return "; ".join(error.text() for error in run_errors)


_KEPT_OUT = {
    "isolated": "it was started with -I, -E or -S; leave that out",
    "environment": "it was started with different environment variables; pass those of its parent on",
    "path": "PYTHONPATH was overwritten; extend it instead: PYTHONPATH=DIR:$PYTHONPATH",
    "unknown": "it is not a Python that loads sitecustomize",
}
"""What keeps the recorder out of a process, and how to let it in."""


# Why a group of runs is inconclusive.


SAME_TRAINING = "the same code, data, environment, machine, arguments and recipe"
_MOST_FOLDERS = 3


class Reason(Fact, frozen=True, kw_only=True):
    """Why a group is inconclusive."""


class RunUnusable(Reason, frozen=True, kw_only=True):
    """A run is not compared."""

    run: int
    errors: tuple[AnyRunError, ...]

    def text(self) -> str:
        return f"run {self.run}: {errors(self.errors)}"


class SingleRun(Reason, frozen=True, kw_only=True):
    """There is nothing to compare a single run with."""

    def text(self) -> str:
        return "a single run has nothing to compare with; use --runs 2 or more"


class OnlyProbes(Reason, frozen=True, kw_only=True):
    """The probes match, and nothing else was recorded."""

    def text(self) -> str:
        return "the probes match, but no training was recorded, and matching probes prove nothing on their own"


class OnlyLosses(Reason, frozen=True, kw_only=True):
    """The losses match, and no weights were recorded."""

    def text(self) -> str:
        return (
            "the losses match, but no weights were recorded, and matching losses prove nothing on their own; "
            "use --artifact to compare a file the script saves them to"
        )


class TrainingsUnseen(Reason, frozen=True, kw_only=True):
    """What was recorded matches, but a run may have trained more."""

    run: int
    unseen: tuple[AnyUnseen, ...]

    def text(self) -> str:
        return f"what was recorded matches, but run {self.run} may have trained more: {errors(self.unseen)}"


class RunsMissing(Reason, frozen=True, kw_only=True):
    """Some of the planned runs did not take place."""

    finished: int
    planned: int

    def text(self) -> str:
        return f"{self.finished:,} of {self.planned:,} runs finished"


class RunsCrowded(Reason, frozen=True, kw_only=True):
    """The runs match, but so many at once had fewer ``cores`` together than ``threads`` of each need."""

    jobs: int
    threads: int
    cores: int

    def text(self) -> str:
        return (
            f"{count(self.jobs, 'run')} at once with {count(self.threads, 'thread')} each shared "
            f"{count(self.cores, 'CPU core')}, "
            f"which can hide a race, so matching runs do not count; use --jobs {max(1, self.cores // self.threads)}"
        )


class CoresReduced(Reason, frozen=True, kw_only=True):
    """The runs match, but each of so many at once had 1 of the ``cores``, so that a framework made 1 thread."""

    jobs: int
    cores: int

    def text(self) -> str:
        return (
            f"{count(self.jobs, 'run')} at once had 1 of {count(self.cores, 'CPU core')} each, so the framework used 1 "
            "thread, which hides races between threads, so matching runs do not count; use --jobs 1, or, if it "
            "always trains on 1 thread, set OMP_NUM_THREADS=1 (TF_NUM_INTRAOP_THREADS=1 for TensorFlow)"
        )


class DeviceShared(Reason, frozen=True, kw_only=True):
    """The runs match, but so many at once did not each have a ``device`` to itself, ``""`` if it is not known which."""

    jobs: int
    device: str

    def text(self) -> str:
        return (
            f"{count(self.jobs, 'run')} at once "
            f"{f'shared the device {self.device}' if self.device else 'may have shared a GPU'}, "
            "which can hide a race, so matching runs do not count; use --devices to give each its own, or --jobs 1"
        )


class MachinesRunOnce(Reason, frozen=True, kw_only=True):
    """No two runs were on one machine or on machines alike, or results differ, and these machines did one run each."""

    machines: tuple[int, ...]

    def text(self) -> str:
        if len(self.machines) == 1:
            return f"machine {self.machines[0]} did one run, which does not show whether it repeats its result; do two"
        each = f"machines {both([str(one) for one in self.machines])} did one run each"
        return f"{each}, which does not show whether they repeat their results; do two on each"


class OutputsOpen(Reason, frozen=True, kw_only=True):
    """The trainings match, and something that left the runs differs in a way that may be a result or not."""

    first: OutputDifference
    more: int = 0

    def text(self) -> str:
        return self.first.open_reason(self.more)


class StateUnsettled(Reason, frozen=True, kw_only=True):
    """The runs match, but some read what earlier ones had left, and none was seen without it."""

    state: LeftState

    def text(self) -> str:
        return self.state.unsettled()


class EarlierRunsDiffer(Reason, frozen=True, kw_only=True):
    """The runs match, and in an earlier audit of the same training two differed; ``folders`` are those of such audits.

    All earlier audits had so many ``runs``, of which so many were ``differing`` from most.
    """

    runs: int
    differing: int
    folders: tuple[str, ...]

    def text(self) -> str:
        differ = "differs" if self.differing == 1 else "differ"
        return (
            f"of {count(self.runs, 'earlier run')} with {SAME_TRAINING}, {self.differing:,} {differ} "
            f"({shortened(self.folders, most=_MOST_FOLDERS)}); if something changed since that is not recorded, leave "
            "earlier audits out with --no-history"
        )


if TYPE_CHECKING:
    AnyReason: TypeAlias = Reason
else:
    AnyReason = union(Reason)
