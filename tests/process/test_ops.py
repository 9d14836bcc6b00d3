"""Scans of a few operations, in real processes."""

from typing import Any

import pytest

from tests.process.conftest import Project

RACING = {"index_put_", "put_", "take", "index_copy_"}
"""Whether all of them are seen to race in a scan this short depends on the machine; at least half are."""

MEMORY = {"empty", "new_empty_strided"}
CONTROLS = ("add", "mm", "cumsum", "scatter_add", "index_add", "nn.functional.embedding")


def scan(project: Project, *words: str) -> tuple[int, dict[str, Any]]:
    done = project.detaudit("ops", *words, "--format", "json", "-q")
    return done.code, done.json


def test_a_few_operations_of_torch(project: Project) -> None:
    names = [word for op in (*RACING, *MEMORY, *CONTROLS) for word in ("--op", op)]
    code, found = scan(project, "--dtype", "float32", "--repeats", "5", *names)
    by_cause = {
        cause: {one["op"] for one in found["differing"] if one["cause"] == cause} for cause in ("race", "memory")
    }
    assert (code, by_cause["memory"]) == (1, MEMORY)
    assert by_cause["race"] <= RACING
    assert len(by_cause["race"]) >= 2
    assert (found["crashed"], found["skipped"]) == ([], [])
    assert found["operations"] == len(names) / 2
    assert {one["direction"] for one in found["differing"] if one["op"] == "take"} <= {"backward"}
    effects = {(one["op"], one["switch"]) for one in found["differing"]}
    assert ("empty", "fixes") in effects
    assert {effect for op, effect in effects if op == "put_"} <= {"fixes", "raises"}  # with accumulate, and without
    assert {effect for op, effect in effects if op == "index_put_"} <= {"fixes"}
    for one in found["differing"]:
        if one["cause"] == "race" and one["difference"]:  # kept if the first process saw it
            assert 0 < one["difference"]["mismatched"] < one["difference"]["total"]


def test_operations_that_match_have_status_0_and_a_scan_can_be_resumed(project: Project) -> None:
    done = project.detaudit("ops", "--op", "abs", "--dtype", "float32", "--out", "found", "-q")
    assert done.code == 0
    assert "1 operation (2 cases) of torch" in done.out
    again = project.detaudit("ops", "--resume", "found", "-q")
    assert (again.code, again.out) == (0, done.out)


def test_usage_errors(project: Project) -> None:
    unknown = project.detaudit("ops", "--op", "no_such", "--dtype", "float32", "-q")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no operation of torch matches no_such" in unknown.err
    assert project.detaudit("ops", "--resume", ".").code == 2


@pytest.mark.slow
def test_a_few_operations_of_tensorflow(project: Project) -> None:
    names = ("image.crop_and_resize", "Variable.scatter_sub", "math.bincount", "matmul", "nn.bias_add", "nn.ctc_loss")
    words = [word for op in names for word in ("--op", f"tf.{op}")]
    code, found = scan(project, "--framework", "tensorflow", "--dtype", "float32", *words)
    assert code == 1
    assert {one["op"] for one in found["differing"]} == set(names[:3])
    switch = {one["op"]: one["switch"] for one in found["differing"]}
    assert switch == {"image.crop_and_resize": "fixes", "Variable.scatter_sub": "fixes", "math.bincount": "no-effect"}
