"""Lines that may race: from operations that ran, from those that were only listed, and for data out of a pipeline."""

from pathlib import Path

import pytest

from detaudit.auditor.trace import culprit
from detaudit.auditor.trace.op_diff import Finding, Kind
from detaudit.auditor.trace.op_records import OpLine
from detaudit.auditor.trace.suspects import suspects
from detaudit.model import Difference, Stage
from detaudit.recipe.flags import load_catalogue

PIPELINE = """\
def augment(image):
    return image + tf.random.normal((32,))
data = data.map(augment, num_parallel_calls=8)
model.fit(data)
"""


def scene(folder: Path) -> culprit.Scene:
    (folder / "train.py").write_text(PIPELINE)
    return culprit.Scene((), folder, folder, load_catalogue(), {"tensorflow": "2.21"}, ["cpu"])


def listed(folder: Path, op: str, line: int) -> OpLine:
    return OpLine(0, "MainThread", 0, op, (), (), file=str(folder / "train.py"), line=line, listed=True)


def test_each_line_is_told_once_and_why(tmp_path: Path) -> None:
    ops = [
        listed(tmp_path, "RandomStandardNormal", 2),
        listed(tmp_path, "RandomUniform", 2),
        listed(tmp_path, "ParallelMapDatasetV2", 3),
        OpLine(0, "", 0, "RandomUniform", (), (), listed=True),
    ]
    found = suspects(ops, scene(tmp_path))
    assert [(one.file, one.line) for one in found] == [("train.py", 2), ("train.py", 3)]
    assert "RandomStandardNormal in whatever order" in found[0].what
    assert "ParallelMapDatasetV2, which is known to race where deterministic=False" in found[1].what


@pytest.mark.parametrize(("op", "line", "is_one"), [("aten.put_.default", 3, True), ("aten.add.Tensor", 3, False)])
def test_what_ran_is_a_suspect_only_where_it_is_known_to_race(tmp_path: Path, op: str, line: int, is_one: bool) -> None:
    ran = OpLine(0, "MainThread", 1, op, (("a", 0),), (("b", 1, True),), file=str(tmp_path / "train.py"), line=line)
    assert bool(suspects([ran], scene(tmp_path))) is is_one


def test_a_module_that_is_called_without_tensors_is_no_suspect(tmp_path: Path) -> None:
    called = OpLine(0, "MainThread", 1, "module", (), (), file=str(tmp_path / "train.py"), line=3, module="encoder")
    assert suspects([called], scene(tmp_path)) == ()


def test_data_out_of_a_pipeline_is_led_back_to_its_first_line_that_may_race(tmp_path: Path) -> None:
    at = scene(tmp_path)
    element = OpLine(9, "MainThread", 1, "IteratorGetNext", (), (("b", -1, True),), str(tmp_path / "train.py"), 4)
    differs = Difference(rank=0, step=1, stage=Stage.BATCH)
    made = culprit.of_operation(Finding(Kind.OUTPUT, element, element), differs, at)
    assert (made.line, made.cause, made.how, made.inputs_equal) == (4, "data", "outside", False)
    ops = [listed(tmp_path, "RandomStandardNormal", 2), listed(tmp_path, "ParallelMapDatasetV2", 3)]
    found = culprit.of_pipeline(made, suspects(ops, at), ops[0].op, at)
    assert (found.line, found.at, found.cause, found.op) == (2, "train.py:4", "data", "IteratorGetNext")
    assert found.code == "return image + tf.random.normal((32,))"
    assert [one.line for one in found.also] == [3]
    assert found.cures[0].flag == "tensorflow-op-determinism"
