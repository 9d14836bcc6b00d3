"""Traces for the golden reports: a kernel with its tensors, a line that an edit mends, and a race that hides."""

from typing import Any

from detaudit.model import (
    Bounded,
    Culprit,
    Difference,
    Edit,
    FirstMismatch,
    FlagCure,
    NextStep,
    Pass,
    Source,
    Stage,
    TensorDifference,
    TensorPair,
    Trace,
    Verdict,
)
from tests.report.bisections import a_trial

DIFFERS = Difference(rank=0, step=12, stage=Stage.BACKWARD)
DETERMINISTIC_ALGORITHMS = FlagCure(
    flag="torch-deterministic-algorithms",
    title="Use deterministic algorithms",
    in_script="torch.use_deterministic_algorithms(True)",
    where="after import torch",
)
TENSOR = TensorPair(
    dtype="float32",
    shape=(1000, 32),
    kept="two.npz",
    difference=TensorDifference(
        mismatched=22300,
        total=32000,
        max_abs=8.7e-11,
        max_rel=0.5,
        max_ulp=1280,
        nans=0,
        first=FirstMismatch(index=(0, 3), values=("0.1", "0.2"), bits=("0x3dcccccd", "0x3e4ccccd")),
        then=(FirstMismatch(index=(0, 4), values=("1", "2"), bits=("0x3f800000", "0x40000000")),),
    ),
)


def _trace(**fields: Any) -> Trace:
    values: dict[str, Any] = {
        "schema_version": 1,
        "command": ("detaudit", "trace", "train.py"),
        "environment": {"machine": "x86_64"},
        "verdict": Verdict.NONDETERMINISTIC,
        "groups": (a_trial(1, (), 1.5, Stage.BACKWARD),),
        "culprit": None,
        "bounded": None,
        "observer_effect": False,
        "passes": (Pass(level="ops", first=12, last=12, runs=2, differs=DIFFERS),),
        "launches": 6,
    }
    return Trace(**{**values, **fields})


KERNEL = Culprit(
    how="output",
    cause="kernel",
    rank=0,
    step=12,
    stage=Stage.BACKWARD,
    file="model.py",
    line=41,
    code="return self.head(self.table[words])",
    op="aten.index_put.default",
    node="IndexBackward0",
    module="encoder.layers.3",
    backward=True,
    inputs_equal=True,
    tensor=TENSOR,
    cures=(DETERMINISTIC_ALGORITHMS,),
)
ORDER = Culprit(
    how="outside",
    cause="hash",
    rank=0,
    step=1,
    stage=Stage.BATCH,
    file="data.py",
    line=7,
    code="names = list(set(found))",
    words="iterates over a set, whose order changes with PYTHONHASHSEED if it holds strings",
    op="aten.lift_fresh.default",
    at="train.py:12",
    edit=Edit(file="data.py", first=7, old=("    names = list(set(found))",), new=("    names = sorted(set(found))",)),
    also=(Source(file="train.py", line=3, what="calls hash()", kind="candidate"),),
)
SUSPECT = Source(file="train.py", line=9, what="runs aten.put_.default, which is known to race", kind="candidate")
NEXT = NextStep(
    command="detaudit run train.py --runs 5 --flag torch-deterministic-algorithms",
    why="is it deterministic with this flag?",
)

TRACES = {
    "traced-kernel": _trace(culprit=KERNEL, next_steps=(NEXT,)),
    "traced-order": _trace(culprit=ORDER),
    "traced-hidden": _trace(
        bounded=Bounded(step=12, after="the input of encoder", before="the output of encoder", suspects=(SUSPECT,)),
        observer_effect=True,
        passes=(
            Pass(level="ops", first=12, last=12, runs=5, differs=None),
            Pass(level="modules", first=12, last=12, runs=2, differs=DIFFERS),
        ),
    ),
}
