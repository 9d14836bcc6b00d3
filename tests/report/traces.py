"""Traces for the golden reports: a kernel with its tensors, a line with an edit, a hidden race, nothing to trace."""

from typing import Any

from detaudit.model import (
    SCHEMA_VERSION,
    Argument,
    Boundary,
    Cause,
    Condition,
    Confidence,
    Culprit,
    Difference,
    Edit,
    FirstMismatch,
    FlagFix,
    How,
    ModeEffect,
    Narrowed,
    NextStep,
    Operand,
    Operation,
    Pass,
    Purpose,
    RemedyTrial,
    Replay,
    ReplayedPass,
    ReplayVerdict,
    Series,
    Source,
    SourceKind,
    Stage,
    StepSpread,
    TensorDifference,
    TensorGrid,
    TensorPair,
    Trace,
    Verdict,
)
from tests.report.bisections import a_trial

DIFFERS = Difference(rank=0, step=12, stage=Stage.BACKWARD)
DETERMINISTIC_ALGORITHMS = FlagFix(
    flag="torch-deterministic-algorithms",
    title="Use deterministic torch algorithms; raise if none exists",
    trial=RemedyTrial(runs=2),
)
TENSOR = TensorPair(
    dtype="float32",
    shape=(1000, 32),
    saved_to="two.npz",
    difference=TensorDifference(
        mismatched=22300,
        total=32000,
        max_abs=8.7e-11,
        max_rel=0.5,
        max_ulp=1280,
        nans=3,
        first=FirstMismatch(index=(0, 3), values=("0.1", "0.2"), bits=("0x3dcccccd", "0x3e4ccccd")),
        next=(FirstMismatch(index=(0, 4), values=("1", "2"), bits=("0x3f800000", "0x40000000")),),
        ulps=(0, 12000, 9000, 1297),
        slices=(7000, 1000, 6300, 8000),
        grid=TensorGrid(rows=1000, columns=32, counts=((0, 8000), (6300, 8000))),
    ),
)


def _series(condition: Condition, *counts: int, fill: str = "", threads: int = 4, error: str = "") -> Series:
    repeats, distinct = sum(counts), len(counts)
    return Series(
        condition=condition, fill=fill, threads=threads, repeats=repeats, distinct=distinct, counts=counts, error=error
    )


def _filled(condition: Condition, *counts: int, threads: int = 4) -> tuple[Series, ...]:
    return tuple(_series(condition, *counts, fill=fill, threads=threads) for fill in ("aa", "55", "00"))


REPLAY = Replay(
    own=ReplayedPass(
        verdict=ReplayVerdict.RACES,
        mode=ModeEffect.FIXES,
        series=(
            _series(Condition.AS_RECORDED, 120, 60, 19, 1),
            _series(Condition.LOADED, 12, 8, 1, 1, 1),
            *_filled(Condition.FILLED, 40, 26),
            *_filled(Condition.ONE_THREAD, 66, threads=1),
            *_filled(Condition.DETERMINISTIC, 66),
        ),
    ),
    gradient=ReplayedPass(verdict=ReplayVerdict.DETERMINISTIC),
    saved_to="race",
)
UPSTREAM = Replay(
    own=ReplayedPass(
        verdict=ReplayVerdict.DETERMINISTIC,
        mode=ModeEffect.RAISES,
        series=(_series(Condition.AS_RECORDED, 200), _series(Condition.DETERMINISTIC, error="RuntimeError: no")),
    ),
    gradient=ReplayedPass(
        verdict=ReplayVerdict.RACES, mode=ModeEffect.NO_EFFECT, series=(_series(Condition.AS_RECORDED, 1, 1, 1),)
    ),
)


def _trace(**fields: Any) -> Trace:
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "command": ("detaudit", "trace", "train.py"),
        "environment": {"machine": "x86_64"},
        "verdict": Verdict.NONDETERMINISTIC,
        "groups": (a_trial(1, (), 1.5, Stage.BACKWARD),),
        "culprit": None,
        "narrowed_to": None,
        "observer_effect": False,
        "passes": (Pass(level="ops", first_step=12, last_step=12, runs=2, first_difference=DIFFERS, run_ids=(1, 2)),),
        "total_runs": 6,
    }
    return Trace(**{**values, **fields})


KERNEL = Culprit(
    how=How.OUTPUT,
    cause=Cause.KERNEL,
    rank=0,
    step=12,
    stage=Stage.BACKWARD,
    file="model.py",
    line=41,
    code="return self.head(self.table[words])",
    operation=Operation(
        name="aten.index_put.default",
        graph_node="IndexBackward0",
        module="encoder.layers.3",
        backward=True,
        inputs_equal=True,
        tensor=TENSOR,
        inputs=(
            Operand(dtype="", shape=(), digests=("", "")),
            Operand(dtype="int64", shape=(256, 8), digests=("5be1f1c2a6b0d9e4", "5be1f1c2a6b0d9e4")),
        ),
        outputs=(Operand(dtype="float32", shape=(1000, 32), digests=("90dd24a1c3f7be10", "2f6cb1d8847ae390")),),
        replay=REPLAY,
    ),
    flags=(DETERMINISTIC_ALGORITHMS,),
)
UPSTREAM_CULPRIT = Culprit(
    how=How.OUTPUT,
    cause=Cause.KERNEL,
    rank=0,
    step=12,
    stage=Stage.FORWARD,
    file="model.py",
    line=41,
    operation=Operation(name="aten.max_unpool2d.default", inputs_equal=True, replay=UPSTREAM),
)
ORDER = Culprit(
    how=How.INPUT,
    cause=Cause.HASH,
    rank=0,
    step=1,
    stage=Stage.BATCH,
    file="data.py",
    line=7,
    code="names = list(set(found))",
    source=Source(file="data.py", line=7, kind=SourceKind.SET_ORDER, suspect=True),
    operation=Operation(name="aten.lift_fresh.default", op_location="train.py:12"),
    edit_trial=RemedyTrial(runs=2),
    suggested_edit=Edit(
        file="data.py", line=7, old=("    names = list(set(found))",), new=("    names = sorted(set(found))",)
    ),
    suspects=(Source(file="train.py", line=3, kind=SourceKind.HASH, suspect=True),),
)
NUMBER = Culprit(
    how=How.ARGUMENT,
    cause=Cause.SEED,
    rank=0,
    step=1,
    stage=Stage.FORWARD,
    file="train.py",
    line=7,
    code="generator = np.random.default_rng()",
    source=Source(file="train.py", line=7, kind=SourceKind.UNSEEDED, call="numpy.random.default_rng"),
    operation=Operation(
        name="aten.mul.Tensor", op_location="train.py:12", argument=Argument(name="2", values=("0.314159", "0.718282"))
    ),
    flags=(
        FlagFix(
            flag="numpy-default-rng",
            title="Seed the generators of NumPy",
            trial=RemedyTrial(runs=2, first_difference=Difference(rank=0, step=1, stage=Stage.FORWARD)),
        ),
    ),
)
SUSPECT = Source(
    file="train.py",
    line=9,
    kind=SourceKind.RACING_OPERATION,
    call="aten.put_.default",
    condition="an index occurs more than once",
    suspect=True,
)
NEXT = NextStep(
    command="detaudit run train.py --runs 5 --flag torch-deterministic-algorithms", purpose=Purpose.CHECK_FLAG
)

SPREAD = (
    StepSpread(step=12, operations=65, differing=3, absorbing=0, losses=(0.5, 0.5)),
    StepSpread(step=13, operations=1076, differing=1026, absorbing=4, losses=(0.25, 0.2500001)),
    StepSpread(step=14, operations=76, differing=76, absorbing=0, losses=(0.25, "nan")),
    StepSpread(step=15, operations=3, differing=0, absorbing=3),
)

TRACES = {
    "traced-kernel": _trace(culprit=KERNEL, next_steps=(NEXT,), spread=SPREAD),
    "traced-replayed": _trace(culprit=UPSTREAM_CULPRIT),
    "traced-order": _trace(culprit=ORDER),
    "traced-number": _trace(culprit=NUMBER),
    "traced-hidden": _trace(
        narrowed_to=Narrowed(
            step=12,
            after=Boundary(module="encoder", side="input"),
            before=Boundary(module="encoder", side="output"),
            suspects=(SUSPECT,),
        ),
        observer_effect=True,
        passes=(
            Pass(level="ops", first_step=12, last_step=12, runs=5, first_difference=None),
            Pass(level="modules", first_step=12, last_step=14, runs=2, first_difference=DIFFERS),
        ),
    ),
    "traced-nothing": _trace(
        verdict=Verdict.DETERMINISTIC,
        groups=(a_trial(1, (), 1.5, runs=5, confidence=Confidence(level=0.95, max_differing_rate=0.5271)),),
        passes=(),
        total_runs=5,
    ),
}
