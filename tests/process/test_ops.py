"""Scans of a few operations, in real processes."""

from typing import Any

import pytest

from tests.process.conftest import Project

RACING = {"index_put_", "put_", "take", "index_copy_"}
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
    assert (code, by_cause) == (1, {"race": RACING, "memory": MEMORY})
    assert (found["crashed"], found["skipped"]) == ([], [])
    assert found["operations"] == len(names) / 2
    backward = [one for one in found["differing"] if one["op"] == "take"]
    assert {one["direction"] for one in backward} == {"backward"}
    effects = {(one["op"], one["switch"]) for one in found["differing"]}
    assert ("put_", "raises") in effects
    assert {("index_put_", "fixes"), ("empty", "fixes")} <= effects
    (first, *_) = [one for one in found["differing"] if one["op"] == "index_put_"]
    assert 0 < first["difference"]["mismatched"] < first["difference"]["total"]


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
