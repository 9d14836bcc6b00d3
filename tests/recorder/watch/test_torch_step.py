"""The calls that one step of a script makes are noted with what is needed to repeat them, in one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from detaudit.ops import scan

pytestmark = pytest.mark.launches

SCRIPT = """
import torch

torch.manual_seed(0)
table = torch.nn.Parameter(torch.randn(20, 4))
library = torch.library.Library("mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")
generator = torch.Generator()
optimizer = torch.optim.SGD([table], lr=0.1)
for number in range(3):
    if number == 1:
        for place in range(3):
            torch.randn(40)[place * 16:][:8].exp()  # parts of memory
        for places in ([1, 2], [1, 2], [1, 1]):
            torch.zeros(5).index_add_(0, torch.tensor(places), torch.ones(2))  # integers
        torch.empty(3)
        torch.ops.mine.twice(torch.ones(2))
        torch.rand(2, generator=generator)
        torch.eye(2).to_sparse().sum()
    loss = table[torch.tensor([0, 0, 3])].sum()  # indexed
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.ones(2).sinh()
"""


def run(folder: Path, script: str = SCRIPT, at: int = 2, most: int = 1 << 20) -> Path:
    """Run a script, and return its log."""
    (folder / "logs").mkdir()
    (folder / "train.py").write_text(script)
    watch = {"level": "step", "first": at, "last": at, "bytes": most}
    env = {**os.environ, wire.ENV_LOGS: str(folder / "logs"), wire.ENV_WATCH: json.dumps(watch)}
    env["PYTHONPATH"] = str(BOOTSTRAP)
    subprocess.run([sys.executable, "train.py"], cwd=folder, env=env, check=True)
    (events,) = (folder / "logs").glob("*.jsonl")
    assert "trouble" not in events.read_text()
    (path,) = (folder / "logs").glob("*.ops")
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("step"))


@pytest.fixture(scope="module")
def noted(log: Path) -> tuple[scan.Noted, ...]:
    return scan.read(log)[0]


def of(noted: tuple[scan.Noted, ...], op: str) -> list[scan.Noted]:
    return [one for one in noted if one.op.split(".")[1] == op]


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.splitlines(), 1) if text in line)


def test_only_the_calls_of_the_step_are_noted(noted: tuple[scan.Noted, ...]) -> None:
    assert len(of(noted, "index")) == 1
    assert not of(noted, "sinh")


def test_calls_with_the_same_integers_are_noted_once(noted: tuple[scan.Noted, ...]) -> None:
    assert [one.count for one in of(noted, "index_add_")] == [2, 1]
    assert {one.line for one in of(noted, "index_add_")} == {line_of("# integers")}


def test_a_backward_pass_is_noted_with_the_line_of_its_forward(noted: tuple[scan.Noted, ...]) -> None:
    (put,) = [*of(noted, "index_put"), *of(noted, "index_put_"), *of(noted, "_index_put_impl_")]
    assert (put.backward, put.line, put.dtype) == (True, line_of("# indexed"), "float32")


def test_only_the_part_of_memory_is_saved_that_a_call_reads(log: Path) -> None:
    raw = [json.loads(line) for line in log.read_text().splitlines() if '"aten.exp.default"' in line]
    assert [(one["count"], one["storages"][0]["bytes"]) for one in raw] == [(3, 32)]
    assert raw[0]["args"][0]["tensor"]["offset"] == 0


def test_what_is_left_out_has_its_reason(log: Path) -> None:
    end = scan.read(log)[1]
    assert end is not None
    found = {(one.reason.value, op) for one in scan.left_out(end) for op in one.operations}
    expected = {
        ("uninitialized", "aten.empty.memory_format"),
        ("custom", "mine.twice.default"),
        ("generator", "aten.rand.generator"),
    }
    assert expected <= found
    assert {"view", "argument"} <= {reason for reason, _ in found}
    assert {reason for reason, _ in found} == {"view", "uninitialized", "custom", "generator", "argument"}


@pytest.mark.full
def test_numbers_that_need_too_much_are_drawn_and_integers_left_out(tmp_path: Path) -> None:
    noted, end = scan.read(run(tmp_path, most=8))
    assert end is not None
    assert not of(noted, "index_add_")
    assert "too-large" in {one.reason.value for one in scan.left_out(end)}
    assert [one.storages[0].file for one in of(noted, "exp")] == [""]


@pytest.mark.full
def test_a_step_that_was_not_done_has_no_end(tmp_path: Path) -> None:
    script = SCRIPT.replace("    loss = ", "    if number == 1:\n        break\n    loss = ")
    assert scan.read(run(tmp_path, script))[1] is None


@pytest.mark.full
def test_a_forked_child_notes_nothing_of_its_parent(tmp_path: Path) -> None:
    forks = "    if number == 1 and not __import__('os').fork():\n        raise SystemExit\n    loss = "
    noted, end = scan.read(run(tmp_path, SCRIPT.replace("    loss = ", forks)))
    assert len(of(noted, "index")) == 1
    assert end is not None
