"""The culprit behind a first difference: its line, how the difference entered, its cause, and what fixes it."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from detaudit.config.flags import load_catalogue
from detaudit.model import (
    MOST_OPERANDS,
    Cause,
    Culprit,
    Difference,
    Edit,
    FlagFix,
    How,
    Operand,
    Operation,
    RemedyTrial,
    Source,
    SourceKind,
    Stage,
)
from detaudit.trace import culprit
from detaudit.trace.align import OpFinding
from detaudit.trace.culprit import Remedies, UserCode
from detaudit.trace.lines import Assigned, CodeLine, Differing, Fork
from detaudit.trace.operations import OpLine

CODE = """\
names = os.listdir(".")
torch.seed()
np.random.seed()
buffer = torch.empty(3)
loss = model(x)
"""
LINES = CODE.splitlines()
DIFFERS = Difference(rank=1, step=7, stage=Stage.FORWARD)


def source(line: int, kind: SourceKind, call: str = "", *, suspect: bool = False) -> Source:
    return Source(file="train.py", line=line, kind=kind, call=call, suspect=suspect)


LISTING = source(1, SourceKind.LISTING_ORDER, "os.listdir")
TORCH = source(2, SourceKind.UNSEEDED, "torch.seed")
NUMPY = source(3, SourceKind.UNSEEDED, "numpy.random.seed")


def known(folder: Path, *sources: Source) -> culprit.CulpritContext:
    (folder / "train.py").write_text(CODE)
    fixes = Remedies(load_catalogue(), {"torch": "2.13.0", "numpy": "2.4.6"}, ["cpu"])
    return culprit.CulpritContext(sources, UserCode(root=folder, cwd=folder), fixes)


def op(folder: Path, line: int = 5, **fields: Any) -> OpLine:
    values: dict[str, Any] = {"op": "aten.mm.default", "ins": (("x", 0),), "outs": (("y", 1, True),), **fields}
    return OpLine(
        n=0, thread=values.pop("thread", "MainThread"), step=3, file=str(folder / "train.py"), line=line, **values
    )


def at(line: int, how: How, cause: Cause, **fields: Any) -> Culprit:
    values = {"file": "train.py", "line": line, "code": LINES[line - 1], "rank": 1, "step": 7, "stage": Stage.FORWARD}
    return Culprit(how=how, cause=cause, **{**values, **fields})


def operand(digest: str, dtype: str = "") -> Operand:
    return Operand(dtype=dtype, shape=(), digests=(digest, digest))


BOTH: dict[str, Any] = {"inputs": (operand("x"),), "outputs": (operand("y"),)}


def flags(found: Culprit) -> list[str]:
    return [fix.flag for fix in found.flags]


@pytest.mark.parametrize(("name", "collective"), [("aten.mm.default", False), ("c10d.allreduce_.default", True)])
def test_an_operation_with_identical_inputs(tmp_path: Path, name: str, collective: bool) -> None:
    found = op(tmp_path, op=name, module="encoder", backward=True, thread="worker")
    made = culprit.of_operation(OpFinding(How.OUTPUT, found, found), DIFFERS, known(tmp_path, LISTING))
    operation = Operation(name=name, module="encoder", backward=True, collective=collective, inputs_equal=True, **BOTH)
    fields = {"step": 3, "stage": Stage.BACKWARD, "thread": "worker", "flags": made.flags, "suspects": (LISTING,)}
    assert made == at(5, How.OUTPUT, Cause.KERNEL, operation=operation, **fields)
    assert flags(made)[0] == "torch-deterministic-algorithms"


def test_a_generator_in_a_different_state_leads_to_the_line_that_seeds_it(tmp_path: Path) -> None:
    drawn = op(tmp_path, op="aten.randn.default", ins=(), random=True, state="s")
    finding = OpFinding(How.RNG_STATE, drawn, drawn)
    made = culprit.of_operation(finding, DIFFERS, known(tmp_path, NUMPY, TORCH))
    operation = Operation(
        name="aten.randn.default", op_location="train.py:5", inputs_equal=True, outputs=BOTH["outputs"]
    )
    edit = Edit(
        file="train.py", line=2, old=("torch.seed()",), new=("torch.manual_seed(0)",), rule="unseeded-generator"
    )
    fields = {"step": 3, "source": TORCH, "flags": made.flags, "suggested_edit": edit, "suspects": (NUMPY,)}
    assert made == at(2, How.RNG_STATE, Cause.SEED, operation=operation, **fields)
    assert flags(made) == ["torch-seed-generators"]


@pytest.mark.parametrize(
    ("call", "is_torch"),
    [("torch.seed", True), ("torch.manual_seed", True), ("Generator.seed", True), ("numpy.random.seed", False)],
)
def test_only_a_line_of_torch_seeds_a_generator_of_torch(tmp_path: Path, call: str, is_torch: bool) -> None:
    line = source(2, SourceKind.UNSEEDED, call)
    drawn = op(tmp_path, op="aten.randn.default", ins=(), random=True)
    random, data = OpFinding(How.RNG_STATE, drawn, drawn), OpFinding(How.INPUT, op(tmp_path), op(tmp_path))
    assert culprit.fitting(random, [line]) == ((line,) if is_torch else ())
    assert culprit.fitting(data, [line]) == (() if is_torch else (line,))


def test_input_that_differs_leads_to_the_line_that_introduced_it(tmp_path: Path) -> None:
    finding = OpFinding(How.INPUT, op(tmp_path), op(tmp_path))
    made = culprit.of_operation(finding, DIFFERS, known(tmp_path, LISTING))
    edit = Edit(
        file="train.py", line=1, old=(LINES[0],), new=('names = sorted(os.listdir("."))',), rule="listing-order"
    )
    operation = Operation(name="aten.mm.default", op_location="train.py:5", **BOTH)
    fields = {"step": 3, "source": LISTING, "flags": made.flags, "suggested_edit": edit}
    assert made == at(1, How.INPUT, Cause.ORDER, operation=operation, **fields)
    assert flags(made) == ["python-sorted-listings"]


def test_uninitialized_memory_leads_to_the_line_that_took_it(tmp_path: Path) -> None:
    taken = op(tmp_path, 4, op="aten.empty.memory_format", uninitialized=True)
    finding = OpFinding(How.UNINITIALIZED, op(tmp_path), op(tmp_path), before=taken)
    made = culprit.of_operation(finding, DIFFERS, known(tmp_path))
    edit = Edit(file="train.py", line=4, old=(LINES[3],), new=("buffer = torch.zeros(3)",), rule="uninitialized-memory")
    operation = Operation(name="aten.mm.default", op_location="train.py:5", **BOTH)
    fields = {"step": 3, "flags": made.flags, "suggested_edit": edit}
    assert made == at(4, How.UNINITIALIZED, Cause.MEMORY, operation=operation, **fields)
    assert flags(made)[0] == "torch-deterministic-algorithms"


def test_no_flag_fixes_a_concurrent_write(tmp_path: Path) -> None:
    finding = OpFinding(How.CONCURRENT_WRITE, op(tmp_path), op(tmp_path), before=op(tmp_path, 4))
    made = culprit.of_operation(finding, DIFFERS, known(tmp_path))
    operation = Operation(name="aten.mm.default", op_location="train.py:5", **BOTH)
    assert made == at(4, How.CONCURRENT_WRITE, Cause.THREADS, step=3, operation=operation)


def test_operations_of_different_code_paths(tmp_path: Path) -> None:
    a, b = op(tmp_path, 4, op="aten.load"), op(tmp_path, 5, op="aten.randn")
    made = culprit.of_operation(OpFinding(How.CONTROL_FLOW, a, b), DIFFERS, known(tmp_path))
    paths = ("aten.load at train.py:4", "aten.randn at train.py:5")
    assert made == at(4, How.CONTROL_FLOW, Cause.ORDER, step=3, operation=Operation(name="aten.load"), values=paths)


def assigned(folder: Path, text: str, *, line: int = 5, bag: str = "") -> Assigned:
    file = str(folder / "train.py")
    return Assigned(
        n=0, thread="MainThread", at=1, step=3, file=file, line=line, name="loss", digest=text, bag=bag, text=text
    )


def test_a_variable_with_a_different_value(tmp_path: Path) -> None:
    first = Differing(assigned(tmp_path, "0.5"), assigned(tmp_path, "0.25"))
    made = culprit.of_variable(first, DIFFERS, known(tmp_path, LISTING))
    assert made == at(5, How.VARIABLE, Cause.DATA, name="loss", values=("0.5", "0.25"), suspects=(LISTING,))


def test_a_variable_with_the_same_elements_in_a_different_order(tmp_path: Path) -> None:
    first = Differing(assigned(tmp_path, "[1, 2]", bag="2:x"), assigned(tmp_path, "[2, 1]", bag="2:x"))
    made = culprit.of_variable(first, DIFFERS, known(tmp_path))
    assert made == at(5, How.VARIABLE, Cause.ORDER, name="loss", values=("[1, 2]", "[2, 1]"))


def test_a_variable_that_only_one_run_changed_has_no_values(tmp_path: Path) -> None:
    made = culprit.of_variable(Differing(assigned(tmp_path, "0.5"), None), DIFFERS, known(tmp_path))
    assert made == at(5, How.VARIABLE, Cause.DATA, name="loss")


def test_a_variable_on_a_line_that_is_known_to_introduce_it(tmp_path: Path) -> None:
    first = Differing(assigned(tmp_path, "a", line=1), assigned(tmp_path, "b", line=1))
    made = culprit.of_variable(first, DIFFERS, known(tmp_path, NUMPY, LISTING))
    expected = culprit.of_source(LISTING, DIFFERS, known(tmp_path, NUMPY, LISTING))
    assert made == expected
    assert made == replace(
        at(1, How.SOURCE, Cause.ORDER, source=LISTING, suspects=(NUMPY,)),
        flags=expected.flags,
        suggested_edit=expected.suggested_edit,
    )
    assert flags(made) == ["python-sorted-listings"]


def test_a_variable_that_a_function_returned_which_ran_elsewhere(tmp_path: Path) -> None:
    """What a worker of a pool runs is traced in no line, and its draws are known."""
    context = known(tmp_path, draws := source(2, SourceKind.UNSEEDED, "numpy.random.normal"), NUMPY)
    (tmp_path / "train.py").write_text("def draw(i):\n    return np.random.normal()\n\n\nloss = pool.map(draw, [1])\n")
    differing = Differing(assigned(tmp_path, "0.5"), assigned(tmp_path, "0.25"))
    assert culprit.of_variable(differing, DIFFERS, context) == culprit.of_source(draws, DIFFERS, context)


def test_two_runs_that_took_different_paths(tmp_path: Path) -> None:
    file = str(tmp_path / "train.py")
    fork = Fork("MainThread", 7, last=CodeLine(file, 5), a=CodeLine(file, 3), b=None)
    made = culprit.of_fork(fork, DIFFERS, known(tmp_path))
    assert made == at(5, How.CONTROL_FLOW, Cause.ORDER, values=("line 3", "the end"))
    elsewhere = culprit.of_fork(dataclasses.replace(fork, thread="worker"), DIFFERS, known(tmp_path, LISTING))
    fields = {"values": ("line 3", "the end"), "thread": "worker", "suspects": (LISTING,)}
    assert elsewhere == at(5, How.CONTROL_FLOW, Cause.THREADS, **fields)


def test_two_runs_that_took_different_paths_after_a_known_line(tmp_path: Path) -> None:
    file = str(tmp_path / "train.py")
    fork = Fork("MainThread", 7, last=CodeLine(file, 1), a=CodeLine(file, 2), b=CodeLine(file, 3))
    made = culprit.of_fork(fork, DIFFERS, known(tmp_path, LISTING))
    edit = Edit(
        file="train.py", line=1, old=(LINES[0],), new=('names = sorted(os.listdir("."))',), rule="listing-order"
    )
    fields = {"values": ("line 2", "line 3"), "source": LISTING, "suggested_edit": edit}
    assert made == at(1, How.CONTROL_FLOW, Cause.ORDER, **fields)


def test_a_line_that_reads_what_an_earlier_run_wrote(tmp_path: Path) -> None:
    made = culprit.of_leftover("cache.bin", str(tmp_path / "train.py"), 1, DIFFERS, known(tmp_path))
    assert made == at(1, How.LEFTOVER_FILE, Cause.DATA, name="cache.bin")


def test_what_an_operation_takes_and_returns_in_two_runs(tmp_path: Path) -> None:
    ins = (("float32[2, 3]:ab", 0), ("int64[]:cd", 1), ("", 2))
    a, b = (op(tmp_path, ins=ins, outs=((f"float32[0]:{digest}", 3, True),) * 20) for digest in ("12", "34"))
    found = culprit.of_operation(OpFinding(How.OUTPUT, a, b), DIFFERS, known(tmp_path)).operation
    assert found is not None
    weights = Operand(dtype="float32", shape=(2, 3), digests=("ab", "ab"))
    assert found.inputs == (weights, operand("cd", "int64"), operand(""))
    assert found.outputs == (Operand(dtype="float32", shape=(0,), digests=("12", "34")),) * MOST_OPERANDS
    assert [one.differs for one in (found.inputs[0], found.outputs[0])] == [False, True]


@pytest.mark.parametrize(
    ("kind", "suspects", "trial", "expected"),
    [
        (SourceKind.HASH, (), RemedyTrial(runs=2, first_difference=DIFFERS), Cause.ADDRESS),
        (SourceKind.HASH, (NUMPY,), RemedyTrial(runs=2, first_difference=DIFFERS), Cause.HASH),  # which may be why
        (SourceKind.SET_ORDER, (), RemedyTrial(runs=2, first_difference=DIFFERS), Cause.HASH),
        (SourceKind.HASH, (), RemedyTrial(runs=2), Cause.HASH),
        (SourceKind.HASH, (), RemedyTrial(runs=1, failed=True), Cause.HASH),
        (SourceKind.HASH, (), None, Cause.HASH),
    ],
)
def test_hashes_that_differ_without_a_salt_are_of_addresses(
    kind: SourceKind, suspects: tuple[Source, ...], trial: RemedyTrial | None, expected: Cause
) -> None:
    tried = FlagFix(flag="python-hash-seed", title="", trial=trial)
    made = at(5, How.SOURCE, Cause.HASH, flags=(tried,), source=source(5, kind), suspects=suspects)
    assert culprit.after_trials(made).cause is expected
