"""A scan of operations in words, and as JSON."""

import json

import click
import msgspec
import pytest

from detaudit.model import SCHEMA_VERSION, FirstMismatch, TensorDifference
from detaudit.model.operations import (
    Direction,
    OpCause,
    OpCrash,
    OpResult,
    OpScan,
    OpSkipped,
    SwitchEffect,
)
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
