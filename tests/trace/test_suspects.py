"""Lines that may race: from operations that ran, from those that were only listed, and for data from a pipeline."""

from pathlib import Path

import pytest

from detaudit.config import choice
from detaudit.config.flags import load_catalogue
from detaudit.model import Cause, Culprit, Difference, How, Operand, Operation, Source, SourceKind, Stage
from detaudit.trace import culprit
from detaudit.trace.align import OpFinding
from detaudit.trace.culprit import Remedies, UserCode, suspects
from detaudit.trace.operations import OpLine

PIPELINE = """\
def augment(image):
    return image + tf.random.normal((32,))
data = data.map(augment, num_parallel_calls=8)
model.fit(data)
"""


@pytest.fixture
def code(tmp_path: Path) -> UserCode:
    (tmp_path / "train.py").write_text(PIPELINE)
    return UserCode(root=tmp_path, cwd=tmp_path)


def condition(op: str, framework: str) -> str:
    row = choice.known(op, framework, "cpu")
    return row.when if row is not None else ""


RANDOM = Source(file="train.py", line=2, kind=SourceKind.UNORDERED_OPERATION, call="RandomStandardNormal", suspect=True)
MAP = Source(
    file="train.py",
    line=3,
    kind=SourceKind.RACING_OPERATION,
    call="ParallelMapDatasetV2",
    suspect=True,
    condition=condition("ParallelMapDatasetV2", "tensorflow"),
)


def listed(folder: Path, op: str, line: int) -> OpLine:
    return OpLine(0, "MainThread", 0, op, (), (), file=str(folder / "train.py"), line=line, listed=True)


def test_each_line_is_named_once_with_its_operation(tmp_path: Path, code: UserCode) -> None:
    ops = [
        listed(tmp_path, "RandomStandardNormal", 2),
        listed(tmp_path, "RandomUniform", 2),
        listed(tmp_path, "ParallelMapDatasetV2", 3),
        OpLine(0, "", 0, "RandomUniform", (), (), listed=True),
    ]
    assert "deterministic=False" in MAP.condition
    assert suspects(ops, code, "cpu") == (RANDOM, MAP)


@pytest.mark.parametrize(("op", "line", "is_one"), [("aten.put_.default", 3, True), ("aten.add.Tensor", 3, False)])
def test_an_operation_that_ran_is_a_suspect_only_if_it_is_known_to_race(
    tmp_path: Path, code: UserCode, op: str, line: int, is_one: bool
) -> None:
    ran = OpLine(0, "MainThread", 1, op, (("a", 0),), (("b", 1, True),), file=str(tmp_path / "train.py"), line=line)
    suspect = Source(
        file="train.py",
        line=line,
        kind=SourceKind.RACING_OPERATION,
        call=op,
        suspect=True,
        condition=condition(op, "torch"),
    )
    assert suspects([ran], code, "cpu") == ((suspect,) if is_one else ())


def test_a_module_that_is_called_without_tensors_is_no_suspect(tmp_path: Path, code: UserCode) -> None:
    called = OpLine(0, "MainThread", 1, "module", (), (), file=str(tmp_path / "train.py"), line=3, module="encoder")
    assert suspects([called], code, "cpu") == ()


ELEMENT = (Operand(dtype="", shape=(), digests=("b", "b")),)


def test_data_from_a_pipeline_is_traced_to_its_first_line_that_may_race(tmp_path: Path, code: UserCode) -> None:
    known = culprit.CulpritContext((), code, Remedies(load_catalogue(), {"tensorflow": "2.21"}, ["cpu"]))
    element = OpLine(9, "MainThread", 1, "IteratorGetNext", (), (("b", -1, True),), str(tmp_path / "train.py"), 4)
    differs = Difference(rank=0, step=1, stage=Stage.BATCH)
    made = culprit.of_operation(OpFinding(How.OUTPUT, element, element), differs, known)
    assert (made.line, made.cause, made.how) == (4, Cause.DATA, How.INPUT)
    assert made.operation == Operation(name="IteratorGetNext", inputs_equal=False, outputs=ELEMENT)
    ops = [listed(tmp_path, "RandomStandardNormal", 2), listed(tmp_path, "ParallelMapDatasetV2", 3)]
    found = culprit.of_pipeline(made, suspects(ops, code, "cpu"), ops[0].op, known)
    assert found.flags[0].flag == "tensorflow-op-determinism"
    assert found == Culprit(
        how=How.INPUT,
        cause=Cause.DATA,
        rank=0,
        step=1,
        stage=Stage.BATCH,
        file="train.py",
        line=2,
        code="return image + tf.random.normal((32,))",
        source=RANDOM,
        operation=Operation(name="IteratorGetNext", op_location="train.py:4", outputs=ELEMENT),
        flags=found.flags,
        suspects=(MAP,),
    )
