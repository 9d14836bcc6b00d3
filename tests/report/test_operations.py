"""A scan of operations in words, and as JSON."""

import json

import click
import msgspec
import pytest

from detaudit.model import SCHEMA_VERSION, FirstMismatch, TensorDifference
from detaudit.model.operations import (
    Direction,
    LeftOut,
    LeftOutCalls,
    OpCause,
    OpCrash,
    OpResult,
    OpScan,
    OpSkipped,
    ScriptStep,
    SwitchEffect,
)
from detaudit.model.problems import Failed
from detaudit.report import operations
from tests.report.test_reporters import assert_golden

APART = TensorDifference(
    mismatched=9,
    total=409_600,
    max_abs=0.0605,
    max_rel=3.89e-6,
    max_ulp=62,
    nans=0,
    first=FirstMismatch(index=(0, 1), values=("1", "2"), bits=("0x1", "0x2")),
)


def result(op: str, **changed: object) -> OpResult:
    same = OpResult(
        op=op,
        dtype="float32",
        sample=2,
        direction=Direction.FORWARD,
        shapes="81920x5, 32768, 32768x5",
        repeats=57,
        distinct=55,
        differing_processes=False,
        cause=OpCause.RACE,
        switch=SwitchEffect.FIXES,
        part="",
        difference=APART,
    )
    return msgspec.structs.replace(same, **changed)


EMPTY = result("empty", sample=0, distinct=2, cause=OpCause.MEMORY, difference=None, differing_processes=True)
REFUSED = result("nn.functional.max_unpool2d", cause=None, distinct=1, switch=SwitchEffect.RAISES, difference=None)
SCAN = OpScan(
    schema_version=SCHEMA_VERSION,
    framework="torch",
    version="2.13.0+cpu",
    device="cpu",
    dtypes=("float32",),
    threads=2,
    started="2026-11-24T02:00:00+00:00",
    wall_s=1500.0,
    operations=694,
    cases=2800,
    differing=(
        result("index_put_"),
        result("index_put_", sample=3, distinct=2),
        result("put_", switch=SwitchEffect.RAISES, error="RuntimeError: put_ does not have …"),
        result("take", direction=Direction.BACKWARD, switch=SwitchEffect.NO_EFFECT),
        EMPTY,
        result("fft", cause=OpCause.UNEXPLAINED, switch=SwitchEffect.UNTRIED),
    ),
    refused=(REFUSED,),
    thread_dependent=("cumsum", "mm"),
    crashed=(
        OpCrash(op="bad", dtype="float32", exit_code=-11),
        OpCrash(op="stuck", dtype="float32", exit_code=None),
    ),
    skipped=(OpSkipped(op="lu", dtype="float32", error="ValueError: no sample"),),
)


def test_a_scan_is_the_golden_one() -> None:
    assert_golden("operations.table", click.unstyle(operations.render(SCAN, "table")))


def test_samples_that_differ_in_the_same_way_share_a_row() -> None:
    found = operations.grouped(SCAN.differing)
    assert [(one.op, one.sample, more) for one, more in found][:2] == [("index_put_", 2, 1), ("put_", 2, 0)]


def test_a_scan_without_a_difference() -> None:
    found = msgspec.structs.replace(SCAN, differing=(), refused=(), thread_dependent=(), crashed=(), skipped=())
    text = click.unstyle(operations.render(found, "table"))
    assert text == (
        "694 operations (2,800 cases) of torch 2.13.0+cpu on cpu, 2 threads match; repeated in 25 min 00 s\n"
    )


def test_a_row_can_be_repeated_on_its_device() -> None:
    on_gpu = msgspec.structs.replace(SCAN, device="cuda")
    assert operations.replay(on_gpu, SCAN.differing[0]) == (
        "detaudit ops --framework torch --op index_put_ --dtype float32 --device cuda --sample 2"
    )


@pytest.mark.parametrize("format_", operations.FORMATS)
def test_each_format_has_each_operation(format_: str) -> None:
    text = operations.render(SCAN, format_)
    assert all(one.op in text for one in SCAN.differing)


def test_a_scan_as_json_can_be_read_again() -> None:
    text = operations.render(SCAN, "json")
    assert json.loads(text)["kind"] == "ops"
    assert msgspec.json.decode(text, type=OpScan) == SCAN


PUT = result("aten.index_put_.default", calls=2, direction=Direction.BACKWARD, file="train.py", line=12)
STEP = ScriptStep(
    command=("train.py", "--lr", "0.1"),
    step=2,
    steps=2,
    frameworks=("torch",),
    processes=2,
    log_dir="/results/runs/none/1",
    calls=310,
    operations=24,
    distinct=62,
    drawn=3,
    compiled=1,
    left_out=tuple(
        LeftOutCalls(reason=reason, calls=place + 1, operations=(f"aten.{reason.value}.default",))
        for place, reason in enumerate(LeftOut)
    ),
)
OF_STEP = msgspec.structs.replace(
    SCAN,
    operations=24,
    cases=61,
    differing=(PUT, msgspec.structs.replace(PUT, sample=9, distinct=2), msgspec.structs.replace(PUT, line=15)),
    refused=(),
    thread_dependent=(),
    crashed=(),
    skipped=(),
    script=STEP,
)


def test_the_step_of_a_script_is_the_golden_one() -> None:
    assert_golden("operations-step.table", click.unstyle(operations.render(OF_STEP, "table")))


def test_the_step_of_a_script_in_markdown_has_lines() -> None:
    assert "train.py:12" in operations.render(OF_STEP, "markdown")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"errors": (Failed(exit_code=3),)}, "the script failed with exit status 3; its output is in /results"),
        ({"steps": 1}, "train.py did 1 step, and step 2 was to be recorded; --at-step selects another"),
        ({"steps": 0}, "train.py did no step, and step 2 was to be recorded"),
        ({"calls": 3}, "no operation in step 2 of train.py could be repeated"),
        (
            {"frameworks": ("tensorflow",)},
            "no operation of torch was recorded in step 2 of train.py, which trains with tensorflow",
        ),
    ],
)
def test_a_step_of_which_nothing_was_repeated_is_inconclusive(changed: dict[str, object], expected: str) -> None:
    script = msgspec.structs.replace(STEP, **{"calls": 0, **changed})
    found = msgspec.structs.replace(OF_STEP, cases=0, operations=0, differing=(), script=script)
    text = click.unstyle(operations.render(found, "table"))
    assert text.startswith(f"inconclusive: {expected}")
    assert "match;" not in text
    assert found.exit_code == 125


def test_an_operation_of_a_script_can_be_repeated() -> None:
    assert operations.replay(OF_STEP, PUT) == (
        "detaudit ops --script train.py --at-step 2 --op aten.index_put_.default -- --lr 0.1"
    )
