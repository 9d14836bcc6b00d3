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


@pytest.mark.slow
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


@pytest.mark.slow
def test_operations_that_match_have_status_0_and_a_scan_can_be_resumed(project: Project) -> None:
    done = project.detaudit("ops", "--op", "abs", "--dtype", "float32", "--out", "found", "-q")
    assert done.code == 0
    assert "1 operation (2 cases) of torch" in done.out
    again = project.detaudit("ops", "--resume", "found", "-q")
    assert (again.code, again.out) == (0, done.out)


@pytest.mark.slow
def test_usage_errors(project: Project) -> None:
    unknown = project.detaudit("ops", "--op", "no_such", "--dtype", "float32", "-q")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no operation of torch matches no_such" in unknown.err
    assert project.detaudit("ops", "--resume", ".").code == 2


STEP = """
    import sys
    import torch
    from torch import nn

    torch.manual_seed(0)
    nodes, edges = 500, 100_000
    to = torch.randint(0, nodes, (edges,))
    features = torch.randn(edges, 8)
    layer = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    racing = "--racing" in sys.argv
    for step in range(1000):
        made = layer(features)
        if racing:
            made = torch.zeros(nodes, 8).index_put_((to,), made, accumulate=True)  # races
        loss = made.tanh().pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, flush=True)
"""


@pytest.mark.slow
def test_only_what_a_step_of_a_script_calls_is_repeated(project: Project) -> None:
    line = 1 + project.write("train.py", STEP).read_text().splitlines().index(
        "        made = torch.zeros(nodes, 8).index_put_((to,), made, accumulate=True)  # races"
    )
    words = ("--script", "train.py", "--op", "*mm*", "--op", "*index*", "--format", "json", "-q", "--", "--racing")
    done = project.detaudit("ops", *words)
    found = done.json
    assert done.code == 1
    (differing,) = found["differing"]
    assert (differing["op"], differing["direction"], differing["cause"]) == (
        "aten.index_put_.default", "forward", "race",
    )  # fmt: skip
    assert (differing["file"], differing["line"], differing["calls"]) == ("train.py", line, 1)
    assert differing["shapes"] == "500x8, 100000, 100000x8"
    assert differing["switch"] == "fixes"
    script = found["script"]
    assert (script["command"], script["step"], script["errors"]) == (["train.py", "--racing"], 2, [])
    assert {one["reason"] for one in script["left_out"]} >= {"view"}
    assert not list(project.folder.glob(".detaudit/*/runs/none/1/logs/*.bin"))


@pytest.mark.slow
def test_a_step_whose_operations_match_has_status_0(project: Project) -> None:
    project.write("train.py", STEP)
    code, found = scan(project, "--script", "train.py", "--at-step", "1")
    assert (code, found["differing"], found["skipped"], found["crashed"]) == (0, [], [], [])
    assert found["cases"] == found["script"]["distinct"] > 10
    assert found["script"]["steps"] < 1000


@pytest.mark.full
def test_a_script_of_which_no_step_is_recorded_is_inconclusive(project: Project) -> None:
    project.write("fails.py", "raise SystemExit(3)\n")
    failed = project.detaudit("ops", "--script", "fails.py", "-q")
    assert failed.code == 125
    assert failed.out.startswith("inconclusive: the script failed with exit status 3; its output is in ")
    project.write("train.py", "import torch_training\ntorch_training.train(steps=1, seed=0)\n")
    short = project.detaudit("ops", "--script", "train.py", "-q")
    assert short.code == 125
    assert short.out.startswith("inconclusive: train.py did 1 step, and step 2 was to be recorded")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--at-step", "2"), "--at-step without --script"),
        (("--", "--lr", "1"), "arguments after -- without --script"),
        (("--script", "train.py", "--dtype", "float32"), "--dtype with --script"),
        (("--script", "train.py", "--sample", "0"), "--sample with --script"),
        (("--script", "train.py", "--device", "cuda"), "--device with --script"),
        (("--script", "train.py", "--framework", "tensorflow"), "--script records what torch calls"),
        (("--script", "train.py", "--resume", "."), "--resume with --script"),
        (("--script", "missing.py"), "script not found"),
    ],
)
def test_options_that_do_not_go_with_a_script_are_refused(
    project: Project, words: tuple[str, ...], expected: str
) -> None:
    project.write("train.py", "")
    done = project.detaudit("ops", *words)
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert "hint:" in done.err


@pytest.mark.slow
def test_a_few_operations_of_tensorflow(project: Project) -> None:
    names = ("image.crop_and_resize", "Variable.scatter_sub", "math.bincount", "matmul", "nn.bias_add", "nn.ctc_loss")
    words = [word for op in names for word in ("--op", f"tf.{op}")]
    code, found = scan(project, "--framework", "tensorflow", "--dtype", "float32", *words)
    assert code == 1
    assert {one["op"] for one in found["differing"]} == set(names[:3])
    switch = {one["op"]: one["switch"] for one in found["differing"]}
    assert switch == {"image.crop_and_resize": "fixes", "Variable.scatter_sub": "fixes", "math.bincount": "no-effect"}
