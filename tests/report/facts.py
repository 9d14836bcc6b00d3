"""An example of every fact, for the sentences in golden/messages.txt."""

from detaudit import wire
from detaudit.model import (
    ArchiveFlaw,
    Argument,
    Boundary,
    Cause,
    Culprit,
    Explanation,
    GateDetail,
    How,
    Inapplicable,
    LikelyCause,
    LockChange,
    Narrowed,
    NotVaried,
    Operation,
    OutputDifference,
    OutputKind,
    Override,
    RankRecord,
    Reason,
    Risk,
    RunError,
    ScriptCall,
    Source,
    SourceKind,
    Stage,
    Warning,
    against,
    audit,
    check,
    problems,
    sources,
)
from detaudit.model import warnings as w
from detaudit.model.against import Apart, Attribution, Change, CodePlace, Doubt, OperationPackage, Parting
from detaudit.model.files import FreshStart, LeftState, StateRead
from detaudit.model.outputs import FileBudget, Unread
from tests.report.bisections import LIKELY
from tests.report.checks import FIRST, OPTIMIZER

OUTPUTS = (
    OutputDifference(path="stdout", kind=OutputKind.WORDS, at="line 3", values=("a cat", "a dog"), runs=(1, 2)),
    OutputDifference(path="stdout", kind=OutputKind.AMBIGUOUS, at="line 3", values=("1.5", "1.6"), runs=(1, 2)),
    OutputDifference(path="log.csv", kind=OutputKind.AMBIGUOUS, at="row 1, x", values=("1.5", "1.6"), runs=(1, 2)),
    OutputDifference(path="a b.npz", kind=OutputKind.UNREADABLE, problem="is cut off", runs=(1, 2)),
    OutputDifference(path="", kind=OutputKind.UNREAD, unread=Unread(budget=FileBudget()), runs=(1, 2)),
    OutputDifference(
        path="",
        kind=OutputKind.UNREAD,
        unread=Unread(budget=FileBudget(), count=3, size=2**31, files=("a.bin",)),
        runs=(1, 2),
    ),
)

RUN_ERRORS: tuple[RunError, ...] = (
    problems.Interrupted(),
    problems.EndedAtDifference(),
    problems.EndedAfterStep(step=5),
    problems.TimedOut(seconds=10.0, step=5, hung=False),
    problems.TimedOut(seconds=10.0, step=90, hung=True),
    problems.Failed(exit_code=1),
    problems.InputExpected(),
    problems.RunLost(attempts=3, reason="node1: Connection closed by remote host"),
    problems.Killed(signal="SIGKILL"),
    problems.Killed(signal="64"),
    problems.Killed(signal="SIGKILL", out_of_memory=True),
    problems.ModuleMissing(module="pandas"),
    problems.RecorderNotLoaded(program="./train.sh"),
    problems.RecorderMismatch(program="train.py", schema=3),
    problems.ProbesIncomplete(),
    problems.NoTraining(imported=("numpy 2.3.0", "torch 2.13.0")),
    problems.NoTraining(imported=()),
    problems.NoTraining(imported=(), left=("last.ckpt",), left_by=1, read=True),
    problems.NoTraining(imported=(), left=("model.pt", "log.txt"), left_by=1),
    problems.FitUndigested(fit="Ridge.fit", detail="Ridge.lock_: cannot pickle '_thread.lock' object"),
    problems.LogIncomplete(pid=12),
    problems.LossPatternUnmatched(pattern=r"loss=(\S+)", last_line="done"),
    problems.LossPatternUnmatched(pattern=r"loss=(\S+)", last_line=""),
    problems.LossPatternMisfit(pattern=r"loss=(\S+)", group="loss", matched="abc"),
    problems.LossPatternMisfit(pattern=r"(?P<step>\S+) (\S+)", group="step", matched="1.5"),
    problems.LossPatternFlood(pattern=r"(\d)", limit=1_000_000),
    problems.StdoutTruncated(),
    problems.StdoutUnreadable(detail="[Errno 5] Input/output error"),
    problems.ArtifactsNotWritten(files=("model.pt",)),
    problems.ArtifactsNotWritten(files=("a.pt", "b.pt", "c.pt"), more=2),
    problems.ArtifactMissing(pattern="model.pt", folder=False),
    problems.ArtifactMissing(pattern="models/", folder=True),
    problems.ArtifactUnusable(path="model.npz", detail="is empty"),
    problems.ProcessUnseen(command="python -I finetune.py", framework="torch", why="isolated"),
    problems.ProcessUnseen(command="python finetune.py", framework="tensorflow", why="environment"),
    problems.ProcessUnseen(command="python train.py", framework="jax", why="path"),
    problems.ProcessUnseen(command="./trainer", framework="torch", why="unknown"),
    problems.RanksUnseen(ranks=(1,), world=2),
    problems.CallUnseen(framework="jax", call="a transformation"),
    problems.RanksUnseen(ranks=(2, 3), world=4),
)

READS = (
    StateRead(path="split.json", left_by=1, read_by=2, file="train.py", line=12),
    StateRead(path="/home/me/.cache/a.bin", left_by=4, read_by=1, recipe="none"),
)

REASONS: tuple[Reason, ...] = (
    problems.RunUnusable(
        run=2, errors=(problems.StdoutTruncated(), problems.ArtifactMissing(pattern="model.pt", folder=False))
    ),
    problems.SingleRun(),
    problems.OnlyProbes(),
    problems.OnlyLosses(),
    problems.TrainingsUnseen(run=1, unseen=(problems.RanksUnseen(ranks=(1,), world=2),)),
    problems.RunsMissing(finished=3, planned=5),
    problems.MachinesRunOnce(machines=(1,)),
    problems.MachinesRunOnce(machines=(1, 3)),
    *[problems.OutputsOpen(first=one) for one in OUTPUTS],
    problems.OutputsOpen(first=OUTPUTS[0], more=2),
    problems.RunsCrowded(jobs=2, threads=2, cores=2),
    problems.RunsCrowded(jobs=4, threads=3, cores=8),
    problems.CoresReduced(jobs=2, cores=2),
    problems.DeviceShared(jobs=2, device="cuda:0"),
    problems.DeviceShared(jobs=2, device=""),
    problems.StateUnsettled(
        state=LeftState(reads=READS, outcome=FreshStart.IN_USE, detail="split.json: process 12 (python) uses it")
    ),
    problems.StateUnsettled(state=LeftState(reads=READS[:1], outcome=FreshStart.FAILED, run=5)),
    problems.EarlierRunsDiffer(runs=19, differing=1, folders=(".detaudit/20261121-145042-24652d70",)),
    problems.EarlierRunsDiffer(runs=24, differing=3, folders=tuple(f".detaudit/{one}" for one in "abcd")),
)

CALL = ScriptCall(file="train.py", line=3, call="torch.manual_seed", value="42")
SWITCH = ScriptCall(file="train.py", line=4, call="torch.use_deterministic_algorithms", value="False")
OVERRIDES: tuple[Override, ...] = (
    Override(at="start", name="PYTHONHASHSEED", value="1"),
    Override(at="start", name="PYTHONHASHSEED"),
    Override(at="end", name="torch.are_deterministic_algorithms_enabled", value="False"),
    Override(at="end", name="torch.are_deterministic_algorithms_enabled", value="False", call=SWITCH),
    Override(at="seed", call=CALL),
    Override(at="seed", call=ScriptCall(file="train.py", line=3, call="torch.seed", value="")),
    Override(at="seed", call=CALL, differs=SourceKind.CLOCK),
    Override(at="seed", call=CALL, differs=SourceKind.PROCESS_ID),
    Override(at="seed", call=CALL, differs=SourceKind.SEED),
)

WARNINGS: tuple[Warning, ...] = (
    w.FlagOverridden(recipe="seeds", flag="torch-seed", override=OVERRIDES[6]),
    w.FlagNotApplied(recipe="all", flag="jax-prng", reason=sources.TooOld(framework="jax", since="0.5", found="0.4")),
    w.VariationFailed(recipe="none", variation="locale", detail="setlocale: unsupported locale setting"),
    w.SetTooLate(recipe="none", variable="PYTHONHASHSEED", file="t.py", line=3),
    w.SetTooLate(audit="digits", recipe="none", variable="OMP_NUM_THREADS", file="t.py", line=5, module="torch"),
    w.SettingsDiffer(recipe="none", run=2, first=1, settings=(("OMP_NUM_THREADS", "2", "1"),)),
    w.SettingsDiffer(recipe="none", run=2, first=1, settings=(("A", "2", "1"), ("B", "y", "x")), more=1),
    w.RecorderFailed(recipe="none", run=3, where="torch.optim", error="AttributeError: step"),
    w.SlotsDiffer(recipe="none", slots=2),
    *(w.ArchiveFlawed(archive="1a2b3c4d5e6f7a8b-000003.detaudit", flaw=flaw) for flaw in ArchiveFlaw),
    w.ArchivesOfOtherPlans(archives=("a.detaudit",), more=2),
    w.RunStoredTwice(archive="copy.detaudit", counted="a.detaudit", is_copy=True),
    w.RunStoredTwice(archive="b.detaudit", counted="a.detaudit", is_copy=False),
    w.LeftoversUnchecked(apart=True),
    w.OutputsUndecided(recipe="trial-2", reason=problems.OutputsOpen(first=OUTPUTS[0])),
    w.RanksRestarted(recipe="none", run=2, times=1),
    w.ProcessesKilled(recipe="none", run=1, commands=("python serve.py", "tensorboard --logdir x")),
    w.ArtifactsSkipped(recipe="none", run=1, files=("a.pt", "b.pt", "c.pt"), more=1),
    w.NamesUnused(recipe="none", names=("spel", "*_sec")),
    w.TemporaryFilesSkipped(recipe="none", files=("/tmp/best.pt", "/tmp/out/scores.csv")),
    w.LeftoverFilesRead(files=("cache/a.pt",)),
    w.LeftoverFilesRead(files=("/home/me/last.ckpt",), isolated=True),
    w.FailedAfterLeftovers(recipe="none", run=2, finished=1, files=("out", "mlflow.db")),
    w.FailedAfterLeftovers(recipe="none", run=2, finished=1, files=("/home/me/out",), outside=True),
    w.RunRepeated(recipe="none", run=2, files=("out",), after_failure=True),
    w.RunRepeated(recipe="none", run=2, files=("last.ckpt",), after_failure=False),
    w.RunRepeated(recipe="none", run=2, files=("last.ckpt",), after_failure=False, removed=True),
    w.RunRepeated(recipe="none", run=2, files=("last.ckpt",), after_failure=True, removed=True),
    w.SeedsFromCountedClock(
        recipe="none",
        sources=(Source(file="train.py", line=3, kind=SourceKind.CLOCK, call="torch.manual_seed"),),
    ),
    w.StateChecked(recipe="none", state=LeftState(reads=READS, outcome=FreshStart.SAME, run=5)),
    w.StateChecked(recipe="none", state=LeftState(reads=READS[:1], outcome=FreshStart.DIFFERENT, run=5)),
    w.StateChecked(recipe="none", state=LeftState(reads=READS[:1], outcome=FreshStart.EXISTED, older=("split.json",))),
    w.StateChecked(recipe="none", state=LeftState(reads=READS, outcome=FreshStart.SAME, run=5, older=("split.json",))),
    w.LeftoversUnchecked(),
    w.FilesUnsearched(folder="/home/me", limit=200_000),
    w.RunsFailAlike(recipe="none", runs=(1, 2)),
    w.RunsLeftNothing(recipe="none", runs=(1, 2)),
    w.AuditStopped(message="cannot write .detaudit/x: no space left on device", hint="Free some space."),
    w.InstrumentedRunUnusable(level="ops", errors=(problems.Failed(exit_code=1),)),
    w.BaselineNotWritten(audit="digits"),
    w.BaselineWithoutAudit(audit="digits"),
    w.EarlierResultDiffers(recipe="none", folders=(".detaudit/20261121-145042-24652d70",)),
    w.SameRecording(),
    w.RecipesDiffer(a="none", b="seeds"),
    w.RanksDiffer(a=1, b=2),
    w.FrameworksDiffer(rank=0, a="torch", b="tensorflow"),
    w.TensorCountsDiffer(rank=0, a=1, b=14),
    w.TensorLayoutsDiffer(rank=0, place=3, a=("float32", (4, 8)), b=("float16", ())),
    w.StagesNotShared(recording="after", stages=(Stage.RNG, Stage.BATCH)),
    w.PartNotShared(part=Stage.STDOUT),
    w.PartNotShared(part=Stage.ARTIFACT),
    w.PartNotShared(part=Stage.SAVED),
    w.PartNotShared(part=Stage.RETURNED),
    w.WeightsSampled(recording="before"),
    w.RunsDiffer(recording="before"),
    w.PrintedLossesSkipped(recording="before", run=2),
    w.SubmoduleMissing(folder="libs/kernels", commit="0123456789"),
    w.FilesOfLfsMissing(files=("data/train.npz", "data/test.npz")),
    w.NoChangeLoaded(files=("evaluate.py", "plots.py")),
    w.PartingUnknown(),
    w.SamePackages(),
    w.OperationUnknown(),
)

DOUBTS: tuple[Doubt, ...] = (
    against.SideDiffers(side="v1.0 (0123456789)", runs=3, distinct_results=3),
    against.SideUnusable(side="working tree", reason=problems.SingleRun()),
    against.SideUnusable(side="working tree"),
    against.LoadedFromOutside(side="v1.0 (0123456789)", files=("src/net.py",)),
    against.BuiltOnce(extensions=("_kernels.so",), sources=("kernels.c",)),
    against.StateShared(files=("/tmp/cache.npz",)),
    against.NothingShared(),
    against.OtherEnvironment(side="old.txt", folders=("/usr/lib/python3/dist-packages",)),
)

ATTRIBUTIONS: tuple[Attribution, ...] = (
    against.OfEnvironment(commit="0123456789"),
    against.OfCode(commit="0123456789"),
    against.Untold(commit="0123456789", doubts=DOUBTS[:1]),
    against.Untold(commit="0123456789", doubts=()),
)

_PLACES = (
    CodePlace(operation="aten.relu.default", file="model.py", line=13, code="x = torch.relu(x)"),
    CodePlace(operation="aten.mul.Tensor", backward=True),
)
PARTINGS = tuple(
    Parting(
        step=number % 2,
        apart=apart,
        a=_PLACES[0],
        b=_PLACES[1] if apart is not Apart.MORE else None,
        number="alpha" if apart is Apart.NUMBER else "",
        values=("-0.1", "-0.2") if apart is Apart.NUMBER else ("", ""),
    )
    for number, apart in enumerate(Apart, 1)
)

_LINE = CodePlace(operation="numpy.linalg.solve", file="train.py", line=9, code="w = np.linalg.solve(a, b)")
_SCIPY = Change(name="scipy", a="1.13.1", b="1.15.3")
ENVIRONMENT_PARTINGS = tuple(
    Parting(step=1, apart=Apart.VARIABLE, a=_LINE, b=_LINE, package=package)
    for package in (
        OperationPackage(name="numpy", versions=("1.26.4", "2.4.6")),
        OperationPackage(name="scikit-learn", versions=("1.6.1", "1.6.1"), requires=(_SCIPY,)),
        OperationPackage(name="click", versions=("", "8.1.8")),
        OperationPackage(calls=("numpy.fft.fft", "window")),
        OperationPackage(),
    )
)

RANKS = tuple(
    RankRecord(rank=rank, framework="torch", steps=9, sum_of_weights=1.5, final_loss=0.25, digest="0123456789abcdef")
    for rank in (0, 1)
)
FILE = Explanation(likely=(LikelyCause.NOT_RECORDED,))

GATE_DETAILS: tuple[GateDetail, ...] = (
    check.RunsMatch(runs=2),
    check.RunsMatch(runs=3),
    check.RunsGaveDifferentResults(runs=3, distinct_results=2, first_difference=FIRST),
    check.RunsGaveDifferentResults(runs=3, distinct_results=2, first_difference=None),
    check.RunsInconclusive(reason=problems.SingleRun()),
    check.RunsInconclusive(reason=None),
    check.RunsDifferedEarlier(runs=2, folder=".detaudit/20261121-145042-24652d70"),
    check.NoBaseline(),
    check.RunsMustMatch(),
    check.MatchesBaseline(),
    check.MatchesBaseline(changed=("torch", "cuda")),
    check.MatchesBaseline(changed=("torch", "cuda", "numpy", "python", "cpu", "kernel", "glibc")),
    check.DiffersFromBaseline(),
    check.DiffersFromBaseline(step=8, stage=Stage.UPDATE, last_equal_step=7, explanation=OPTIMIZER),
    check.DiffersFromBaseline(step=8, stage=Stage.UPDATE, rank=1, last_equal_step=4, changed=("torch",)),
    check.DiffersFromBaseline(step=9, stage=Stage.UPDATE, last_equal_step=9, at_end=True),
    check.DiffersFromBaseline(step=9, stage=Stage.STATE, last_equal_step=9, at_end=True),
    check.DiffersFromBaseline(step=0, stage=Stage.INIT),
    check.DiffersFromBaseline(step=0, stage=Stage.ARTIFACT, explanation=FILE),
    check.DiffersFromBaseline(step=0, stage=Stage.SAVED, site="out/a.npz: b", explanation=FILE),
    check.DiffersFromBaseline(step=8, stage=Stage.UPDATE, changed=("torch",), tolerance=0.001, loss_distance=0.0002),
    check.DiffersFromBaseline(step=8, stage=Stage.UPDATE, changed=("torch",), tolerance=0.001, loss_distance="inf"),
    check.DiffersFromBaseline(step=8, stage=Stage.UPDATE, changed=("torch",), told=ATTRIBUTIONS[0]),
    check.SameAsCommit(commit="v1.0 (0123456789)"),
    check.SameAsCommit(commit="v1.0 (0123456789)", through=400),
    check.DiffersFromCommit(commit="v1.0 (0123456789)", step=8, stage=Stage.UPDATE, code=("model.py",)),
    check.CommitInconclusive(commit="v1.0 (0123456789)", doubts=DOUBTS[:2]),
    check.CommitInconclusive(commit="v1.0 (0123456789)"),
    check.ResumeMatches(stopped_after=4, steps=9, resumed_steps=5),
    check.ResumeDiffers(stopped_after=8, steps=9, resumed_steps=1, uninterrupted=RANKS[:1], resumed=RANKS[:1]),
    check.ResumeDiffers(stopped_after=4, steps=9, resumed_steps=5, uninterrupted=RANKS, resumed=RANKS),
    check.StopUnusable(errors=(problems.Failed(exit_code=1),)),
    check.StoppedTooLate(steps=9),
    check.ResumeUnusable(errors=(problems.Failed(exit_code=1),)),
    check.StartedOver(resumed_steps=9),
    check.NoWeights(),
)

LOCK_CHANGES = (
    LockChange(audit="digits", new_ranks=RANKS),
    LockChange(audit="digits", old_ranks=RANKS[:1], new_ranks=RANKS[:1]),
    LockChange(audit="digits", name="torch", old="2.12.0", new="2.13.0"),
    LockChange(audit="digits", name="cuda", new="12.8"),
    LockChange(audit="digits"),
)

RISKS: tuple[Risk, ...] = (
    audit.VariablesUnset(
        variables=("PYTHONHASHSEED",),
        flag="python-hash-seed",
        title="Fix the string hash seed (PYTHONHASHSEED)",
        by_hand="PYTHONHASHSEED=0 python train.py",
    ),
    audit.VariablesUnset(variables=("A", "B"), flag="f", title="Set A and B", by_hand="A=1 B=1 python train.py"),
    audit.RandomAddresses(flag="system-aslr-off", title="Disable ASLR", by_hand="setarch -R python train.py"),
    audit.RetiredSetting(variable="A", value="1", why="no version reads it", replacement="torch-seed"),
    audit.RetiredSetting(variable="A", value="1", why="no version reads it", replacement=""),
    audit.ThreadsFollowMachine(cpus=16),
)

CALLS = {
    SourceKind.LISTING_ORDER: "os.listdir",
    SourceKind.COMPLETION_ORDER: "multiprocessing.Pool.imap_unordered",
    SourceKind.LISTING_FILES: "glob.glob",
    SourceKind.COMPLETION_ORDER_OPTION: "DataLoader(in_order=False)",
    SourceKind.UNINITIALIZED: "np.empty",
    SourceKind.SHARED_GENERATOR: "numpy.random.normal",
    SourceKind.RACING_OPERATION: "aten.put_.default",
    SourceKind.UNORDERED_OPERATION: "tf.while_loop",
    SourceKind.SYSTEM_VALUE: "time.time",
    SourceKind.HYPERPARAMETER: "lr",
}


def a_source(kind: SourceKind, call: str = "random.seed", generators: tuple[str, ...] = ()) -> Source:
    return Source(file="train.py", line=7, kind=kind, call=CALLS.get(kind, call), generators=generators)


SOURCES = (
    *map(a_source, SourceKind),
    a_source(SourceKind.UNSEEDED, "random.shuffle", ("random",)),
    a_source(SourceKind.UNSEEDED, "augment", ("random", "numpy.random")),
    Source(
        file="train.py",
        line=7,
        kind=SourceKind.UNSEEDED,
        call="numpy.random.default_rng",
        takes=("hyperopt.fmin(rstate)", "umap.UMAP(random_state)"),
    ),
    Source(file="train.py", line=7, kind=SourceKind.UNINITIALIZED),
    Source(
        file="train.py",
        line=7,
        kind=SourceKind.RACING_OPERATION,
        call="aten.index_put.default",
        condition="an element is written more than once",
    ),
)


def likely(*causes: LikelyCause, matching: tuple[Stage, ...] = ()) -> Explanation:
    return Explanation(likely=causes, matching=matching)


EXPLANATIONS = (
    (Stage.INIT, likely(LikelyCause.SEEDS, LikelyCause.INITIALIZATION_ORDER)),
    (Stage.INIT, likely(LikelyCause.LEFTOVERS, LikelyCause.SEEDS, LikelyCause.INITIALIZATION_ORDER)),
    (Stage.RNG, likely(LikelyCause.SEEDING)),
    *LIKELY.items(),
    (Stage.HYPERPARAMETERS, likely(LikelyCause.HYPERPARAMETERS, matching=(Stage.BATCH, Stage.FORWARD))),
    (Stage.INIT, likely(LikelyCause.ENVIRONMENT, LikelyCause.INITIALIZATION_ORDER)),
    (Stage.FORWARD, likely(LikelyCause.DATA, LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY)),
    (Stage.FORWARD, likely(LikelyCause.LOSS_ARGUMENTS, LikelyCause.FORWARD_KERNEL, matching=(Stage.BATCH,))),
    (Stage.REDUCE, likely(LikelyCause.COLLECTIVE, matching=(Stage.FORWARD, Stage.BACKWARD))),
    (Stage.UPDATE, likely(LikelyCause.CODE, matching=(Stage.FORWARD,))),
    (Stage.UPDATE, likely(LikelyCause.RANDOM_STATE, LikelyCause.THREADS, matching=(Stage.RNG, Stage.BATCH))),
    (Stage.UPDATE, likely(LikelyCause.AFTER_THE_LAST_STEP)),
    (Stage.STATE, likely(LikelyCause.DATA, LikelyCause.FORWARD_KERNEL, matching=(Stage.BATCH, Stage.UPDATE))),
    (Stage.STATE, likely(LikelyCause.AFTER_THE_LAST_STEP)),
    (
        Stage.OUTPUT,
        likely(LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY, matching=(Stage.RNG, Stage.BATCH)),
    ),
    (Stage.OUTPUT, likely(LikelyCause.AFTER_THE_LAST_STEP)),
    (Stage.UPDATE, Explanation(gap=(4, 8))),
    (Stage.UPDATE, Explanation(gap=(0, 8))),
    (Stage.STDOUT, likely(LikelyCause.NOT_RECORDED)),
    (Stage.ARTIFACT, likely(LikelyCause.NOT_RECORDED, matching=(Stage.FORWARD,))),
    (Stage.SAVED, likely(LikelyCause.BESIDE_THE_TRAINING, matching=(Stage.FORWARD, Stage.UPDATE))),
    (Stage.PRINTED, likely(LikelyCause.BESIDE_THE_TRAINING, matching=(Stage.FORWARD, Stage.UPDATE))),
    (Stage.EXIT, likely(LikelyCause.NOT_RECORDED)),
    (Stage.RETURNED, likely(LikelyCause.OUTSIDE_THE_WEIGHTS, matching=(Stage.FORWARD, Stage.UPDATE))),
    (Stage.STEPS, likely(LikelyCause.CONTROL_FLOW)),
    (Stage.FORWARD, Explanation(matching=(Stage.BATCH,))),
)


def a_culprit(how: How, cause: Cause = Cause.DATA, name: str = "", operation: Operation | None = None) -> Culprit:
    return Culprit(how=how, cause=cause, rank=0, step=1, stage=Stage.BATCH, name=name, operation=operation)


ARGUMENTS = (
    Argument(name="2", values=("0.31415926535897931", "0.71828182845904509")),
    Argument(name="alpha", values=("-0.3", "-0.30000000000000004")),
    Argument(name="4[0]", values=("True", "False")),
    Argument(name=f"{wire.START}1", values=("15232", "98176")),
)
CULPRITS = (
    *map(a_culprit, How),
    a_culprit(How.OUTPUT, operation=Operation(name="c10d.allreduce_", collective=True)),
    *(a_culprit(How.ARGUMENT, operation=Operation(name="aten.mul.Tensor", argument=one)) for one in ARGUMENTS),
    a_culprit(How.VARIABLE, name="names"),
    a_culprit(How.VARIABLE, Cause.ORDER, name="names"),
    a_culprit(How.LEFTOVER_FILE, name="cache.pt"),
)

ENCODER = Boundary(module="encoder", side="input"), Boundary(module="encoder", side="output")
NARROWED = (
    *(Narrowed(step=3, after=Boundary(), before=Boundary(stage=stage)) for stage in Stage),
    Narrowed(step=3, after=Boundary(stage=Stage.BATCH), before=Boundary(stage=Stage.FORWARD)),
    Narrowed(step=3, after=ENCODER[0], before=ENCODER[1]),
    Narrowed(step=3, after=Boundary(), before=ENCODER[0]),
)

INAPPLICABLE: tuple[Inapplicable, ...] = (
    sources.ByHandOnly(),
    sources.NotImported(),
    sources.NotImported(modules=("torch",)),
    sources.NotImported(modules=("torch", "numpy")),
    sources.NoGpu(),
    sources.FewerThanTwoGpus(),
    sources.TooOld(framework="torch", since="2.10", found="2.9.1"),
    sources.NoLongerNeeded(framework="torch", until="2.8", found="2.9.1"),
    sources.AddressesRandom(detail="the system does not permit personality(ADDR_NO_RANDOMIZE)"),
    sources.XlaFlagsInFile(file="flags.txt", xla_flag="--xla_gpu_deterministic_ops=true"),
    sources.XlaUnknown(xla_flag="--xla_gpu_deterministic_ops=true"),
    sources.XlaTooOld(library="libjax_common.so"),
    sources.RefusedInProcess(detail="AttributeError: module 'torch' has no attribute 'seed'"),
)

NOT_VARIED: tuple[NotVaried, ...] = (
    sources.AddressesRandom(detail="the system does not permit personality(ADDR_NO_RANDOMIZE)"),
    sources.NoGlibc(),
    sources.NoAvx2(),
    sources.NoSecondLocale(),
    sources.NeedsIsolate(),
    sources.NeedsMachine(),
    sources.PinnedByRecipe(recipe="seeds"),
)
