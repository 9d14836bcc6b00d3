"""Where a number that an operation was given was made: the variable that has it, and the line that introduced it."""

from pathlib import Path

import pytest

from detaudit.config.flags import load_catalogue
from detaudit.model import Argument, Difference, How, Source, SourceKind, Stage
from detaudit.trace import culprit
from detaudit.trace.align import OpFinding
from detaudit.trace.culprit import CulpritContext, Remedies, UserCode
from detaudit.trace.lines import Assigned, Differing
from detaudit.trace.operations import OpLine

CODE = """\
import os, time, random
import numpy as np
started = time.time()
rng = np.random.default_rng()
np.random.shuffle(order)
def ramp(step):
    return 0.5 + time.time() % 60
for step in range(10):
    lam = rng.beta(0.4, 0.4)
    mixed = lam * x[step]
    weight = ramp(step)
    loss = weight * mixed
    noise = np.random.normal()
    split = hash("run") % 7
    steady = 3 * 2
    loss = loss + noise
"""


def op(value: str, line: int) -> OpLine:
    return OpLine(
        n=0, thread="MainThread", step=1, op="aten.mul.Tensor", ins=(), outs=(), file="train.py", line=line,
        scalars={"2": value},
    )  # fmt: skip


def finding(a: str, b: str, line: int) -> OpFinding:
    return OpFinding(How.ARGUMENT, op(a, line), op(b, line), argument="2")


def assigned(name: str, text: str, line: int) -> Assigned:
    return Assigned(n=0, thread="MainThread", at=1, step=1, file="train.py", line=line, name=name, digest="", text=text)


def differing(name: str, a: str, b: str, line: int) -> Differing:
    return Differing(assigned(name, a, line), assigned(name, b, line))


def source(line: int, kind: SourceKind, call: str, **fields: object) -> Source:
    return Source(file="train.py", line=line, kind=kind, call=call, **fields)  # type: ignore[arg-type]


DEFAULT_RNG = source(4, SourceKind.UNSEEDED, "numpy.random.default_rng")
GLOBAL = source(5, SourceKind.UNSEEDED, "numpy.random.shuffle", generators=("numpy.random",))


def found(folder: Path, line: int, *sources: Source, near: int | None = None) -> Source | None:
    (folder / "train.py").write_text(CODE)
    known = CulpritContext(sources, UserCode(root=folder, cwd=folder), Remedies(load_catalogue(), {}, []))
    return culprit.source_of_number(finding("1", "2", line), [("train.py", near)] if near else [], known)


def test_the_number_that_differs() -> None:
    assert culprit.argument(finding("0.31", "0.72", 9)) == Argument(name="2", values=("0.31", "0.72"))
    assert culprit.argument(OpFinding(How.OUTPUT, op("1", 1), op("1", 1))) is None


@pytest.mark.parametrize(
    ("given", "held"),
    [(("0.5", "0.25"), ("0.5", "0.25")), (("-0.5", "-0.25"), ("0.5", "0.25")), (("0.3", "0.1"), ("0.30000001", "0.1"))],
)
def test_the_variable_that_has_the_number(given: tuple[str, str], held: tuple[str, str]) -> None:
    first, wanted = differing("started", "12.5", "99.0", 3), differing("lam", *held, 9)
    assert culprit.variable_of(finding(*given, 10), [first, wanted]) is wanted


def test_a_variable_must_have_the_number_in_both_runs() -> None:
    half = [differing("lam", "0.5", "0.75", 9), Differing(assigned("lam", "0.5", 9), None)]
    assert culprit.variable_of(finding("0.5", "0.25", 10), half) is None
    texts = [differing("name", "a", "b", 9)]
    assert culprit.variable_of(finding("nan", "inf", 10), texts) is None


def test_a_number_drawn_from_a_generator_leads_to_the_line_that_made_it(tmp_path: Path) -> None:
    assert found(tmp_path, 10, GLOBAL, DEFAULT_RNG) == DEFAULT_RNG


def test_a_number_drawn_from_a_global_generator_leads_to_the_line_that_drew_first(tmp_path: Path) -> None:
    assert found(tmp_path, 16, DEFAULT_RNG, GLOBAL) == GLOBAL
    seeded = source(5, SourceKind.CLOCK, "numpy.random.seed")
    assert found(tmp_path, 16, DEFAULT_RNG, seeded) == seeded
    assert found(tmp_path, 13, source(5, SourceKind.UNSEEDED, "random.seed")) is None


def test_a_number_from_the_clock_leads_to_the_line_that_reads_it(tmp_path: Path) -> None:
    clock = source(7, SourceKind.SYSTEM_VALUE, "time.time")
    assert found(tmp_path, 12, DEFAULT_RNG) == clock
    assert found(tmp_path, 12, DEFAULT_RNG, near=9) == DEFAULT_RNG


def test_code_alone_explains_only_the_line_that_was_observed(tmp_path: Path) -> None:
    hashed = source(14, SourceKind.HASH, "", suspect=True)
    assert found(tmp_path, 15, near=14) == hashed
    assert found(tmp_path, 14) is None
    assert found(tmp_path, 15) is None


def test_lines_that_only_make_tensors_introduce_no_number(tmp_path: Path) -> None:
    assert found(tmp_path, 15, source(15, SourceKind.UNINITIALIZED, "torch.empty")) is None


def test_other_runs_may_have_drawn_another_number_at_the_line_that_is_known_to_draw(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    rate = source(9, SourceKind.HYPERPARAMETER, "lr")
    drawn = source(5, SourceKind.UNSEEDED, "optuna.suggest_int")  # by a call of which the code shows nothing
    known = CulpritContext((rate, drawn), UserCode(root=tmp_path, cwd=tmp_path), Remedies(load_catalogue(), {}, []))
    differs = Difference(rank=0, step=1, stage=Stage.INIT)
    near = [differing("started", "1.5", "9.5", 3), differing("lr", "0.3", "0.7", 9), differing("size", "8", "9", 5)]
    made = culprit._of_number(finding("3", "4", 15), near, differs, known)
    assert (made.line, made.source, made.operation and made.operation.op_location) == (5, drawn, "train.py:15")
    assert culprit._of_number(finding("3", "4", 15), near[:2], differs, known).line == 15
