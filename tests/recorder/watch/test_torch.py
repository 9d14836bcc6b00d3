"""The operations of torch in a window of steps are recorded with inputs, outputs, lines and modules, in one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from detaudit.trace.operations import OpLine, operations

pytestmark = pytest.mark.launches

SCRIPT = """
import threading
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 2  # own backward

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.table = nn.Parameter(torch.empty(10, 4).uniform_())
    def forward(self, x, which):
        return self.layers(x) + self.table[which]  # indexed

model = Model()
outside = np.ones((3, 4), "f4")
x = torch.from_numpy(outside)  # entered
which = torch.tensor([0, 1, 1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def work():
    torch.ones(3).cumsum(0)  # in a thread

for step in range(4):
    padded = torch.empty(4, 4)  # uninitialized
    padded[:3] = x
    padded[3] = 0
    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    loss = Squared.apply(model(padded[:3], which)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def run(folder: Path, script: str, watch: dict[str, object]) -> list[OpLine]:
    (folder / "logs").mkdir()
    (folder / "train.py").write_text(script)
    env = {**os.environ, wire.ENV_LOGS: str(folder / "logs"), wire.ENV_WATCH: json.dumps(watch)}
    env["PYTHONPATH"] = str(BOOTSTRAP)
    subprocess.run([sys.executable, "train.py"], cwd=folder, env=env, check=True)
    (trace,) = (folder / "logs").glob("*.jsonl")
    assert "trouble" not in trace.read_text()
    (path,) = (folder / "logs").glob("*.ops")
    return list(operations(path))


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> list[OpLine]:
    return run(tmp_path_factory.mktemp("ops"), SCRIPT, {"level": "ops", "first": 0, "last": 2})


def of(ops: list[OpLine], name: str) -> list[OpLine]:
    return [op for op in ops if op.op.startswith(f"aten.{name}.")]


def line(op: OpLine) -> str:
    return Path(op.file).read_text().splitlines()[op.line - 1]


def test_views_are_passed_over(ops: list[OpLine]) -> None:
    assert ops
    assert not [op for op in ops if op.op in ("aten.t.default", "aten.view.default", "aten.slice.Tensor")]


def test_the_window_ends_with_its_last_step(ops: list[OpLine]) -> None:
    assert len(of(ops, "addmm")) == 2
    assert {op.step for op in of(ops, "addmm")} == {1, 2}


def test_the_module_and_the_line_of_a_forward(ops: list[OpLine]) -> None:
    first = of(ops, "addmm")[0]
    assert first.module == "layers.0"
    assert "self.layers(x)" in line(first)


def test_an_operation_of_a_backward_pass_has_the_line_and_the_module_of_its_forward(ops: list[OpLine]) -> None:
    found = next(op for op in ops if op.node == "IndexBackward0" and "index_put" in op.op)
    assert found.backward
    assert "# indexed" in line(found)
    assert found.module == "Model"


def test_a_user_defined_function_has_its_own_line(ops: list[OpLine]) -> None:
    assert any("# own backward" in line(op) for op in ops if op.backward)


def test_uninitialized_memory_has_no_digest_and_a_partial_write_is_recorded(ops: list[OpLine]) -> None:
    made = next(op for op in ops if op.uninitialized and "# uninitialized" in line(op))
    ((digest, storage, _),) = made.outs
    assert digest == ""
    written = next(op for op in of(ops, "copy_") if op.outs[0][1] == storage)
    assert written.ins[0] == ("", storage)
    assert not written.outs[0][2]


def test_a_tensor_from_outside_torch_is_recorded(ops: list[OpLine]) -> None:
    assert "# entered" in line(of(ops, "lift_fresh")[0])


def test_random_numbers_with_the_state_of_their_generator(ops: list[OpLine]) -> None:
    drawn = of(ops, "uniform_")
    assert all(op.random and op.state for op in drawn)
    assert len({op.state for op in drawn}) == len(drawn)


def test_a_storage_keeps_its_number(ops: list[OpLine]) -> None:
    stores = [op.ins[2][1] for op in of(ops, "addmm")]
    assert len(set(stores)) == 1


def test_other_threads_are_recorded(ops: list[OpLine]) -> None:
    (first, *_) = of(ops, "cumsum")
    assert first.thread == "worker"
    assert "# in a thread" in line(first)


@pytest.mark.slow
def test_a_task_of_a_pool_is_identified_by_its_number(tmp_path: Path) -> None:
    script = """
import torch
from concurrent.futures import ThreadPoolExecutor
def work(number):
    return torch.full((2,), float(number)).cumsum(0)
with ThreadPoolExecutor(2) as pool:
    list(pool.map(work, range(4)))
"""
    ops = of(run(tmp_path, script, {"level": "ops", "first": 0, "last": 1}), "cumsum")
    digests = {op.thread: op.ins[0][0] for op in ops}
    assert sorted(digests) == ["task 1", "task 2", "task 3", "task 4"]
    (tmp_path / "again").mkdir()
    again = of(run(tmp_path / "again", script, {"level": "ops", "first": 0, "last": 1}), "cumsum")
    assert {op.thread: op.ins[0][0] for op in again} == digests


@pytest.mark.full
def test_a_write_outside_torch_changes_the_digest(tmp_path: Path) -> None:
    script = """
import numpy as np, torch
outside = np.ones(4, "f4")
x = torch.from_numpy(outside)
x.sum()
outside[0] = 2
x.sum()
"""
    first, second = of(run(tmp_path, script, {"level": "ops", "first": 0, "last": 1}), "sum")
    assert first.ins[0][1] == second.ins[0][1]
    assert first.ins[0][0] != second.ins[0][0]


def test_the_tensors_of_one_operation(tmp_path: Path) -> None:
    script = "import torch\nx = torch.arange(3.) * 2\ny = x + 1\n"
    run(tmp_path, script, {"level": "tensors", "first": 0, "last": 1, "thread": "MainThread", "n": 2})
    (data,) = (tmp_path / "logs").glob("*.out0.bin")
    assert data.read_bytes() == b"\0\0\x80?\0\0@@\0\0\xa0@"
    (given,) = (tmp_path / "logs").glob("*.in0.bin")
    assert given.read_bytes() == b"\0\0\0\0\0\0\0@\0\0\x80@"


@pytest.mark.full
def test_only_operations_that_are_known_to_race(tmp_path: Path) -> None:
    script = """
import torch
torch.manual_seed(0)
x, which = torch.zeros(4, requires_grad=True), torch.tensor([0, 1, 1])
y = x[which].exp()
y.sum().backward()  # backward
torch.zeros(4).index_put_((which,), torch.ones(3), accumulate=True)
z = torch.zeros(3)
z.numpy()[0] = 1
z.index_add_(0, torch.tensor([0]), torch.ones(1))
"""
    ops = run(tmp_path, script, {"level": "racing", "first": 0, "last": 1, "racing": ["index_put", "index_put_"]})
    assert [(op.op, op.line) for op in ops] == [("aten.index_put.default", 5), ("aten.index_put_.default", 7)]
    assert all(digest for op in ops for digest, _ in op.ins)


def test_collectives_are_operations(tmp_path: Path) -> None:
    script = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
model(torch.ones(1, 2)).sum().backward()  # backward
total = torch.ones(2)
dist.all_reduce(total)  # summed
"""
    ops = [op for op in run(tmp_path, script, {"level": "ops", "first": 0, "last": 1}) if op.op.startswith("c10d.")]
    assert ops[-1].op == "c10d.allreduce_.default"
    assert line(ops[-1]).endswith("# summed")
    assert ops[-1].ins[0][0] == ops[-1].outs[0][0] != ""


@pytest.mark.parametrize("option", [pytest.param("foreach=True", marks=pytest.mark.full), "fused=True"])
def test_optimizers_that_update_all_weights_at_once(tmp_path: Path, option: str) -> None:
    script = f"""
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters(), {option})
for _ in range(2):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()  # updated
"""
    ops = run(tmp_path, script, {"level": "ops", "first": 0, "last": 2})
    updates = [op for op in ops if op.op.startswith(("aten._foreach_", "aten._fused_adam_"))]
    assert updates
    assert all(line(op).endswith("# updated") for op in updates)
    changed = updates[-1]
    assert {storage for _, storage, _ in changed.outs} <= {storage for _, storage in changed.ins}
    assert len({digest for digest, _, _ in changed.outs}) > 1


@pytest.mark.slow
def test_a_compiled_region_keeps_its_results_and_operations_outside_are_recorded(tmp_path: Path) -> None:
    script = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(3, 1)
compiled = torch.compile(model, backend="aot_eager")
for _ in range(3):
    loss = compiled(torch.ones(2, 3)).square().mean()  # outside
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
print([p.tolist() for p in model.parameters()])
"""
    (tmp_path / "plain.py").write_text(script)
    plain = subprocess.run([sys.executable, "plain.py"], cwd=tmp_path, capture_output=True, check=True).stdout
    saved = "print(", "open('printed', 'w').write(str("
    ops = run(tmp_path, script.replace(*saved) + ")", {"level": "ops", "first": 0, "last": 3})
    assert (tmp_path / "printed").read_text().encode() == plain.strip()
    assert {line(op).rpartition("# ")[2] for op in of(ops, "mean")} == {"outside"}


def test_calls_of_modules_alone(tmp_path: Path) -> None:
    script = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
model(torch.ones(1, 2))
"""
    ops = run(tmp_path, script, {"level": "modules", "first": 0, "last": 1})
    assert [(op.op, op.module) for op in ops] == [
        ("module", "0"), ("module", "1.0"), ("module", "1"), ("module", "Sequential"),
    ]  # fmt: skip
    assert all(op.ins and op.outs and op.line == 6 for op in ops)


@pytest.mark.full
def test_numbers_given_to_an_operation(tmp_path: Path) -> None:
    script = """
import torch
x = torch.ones(3)
0.25 * x
x.add_(x, alpha=-0.5)
torch.full((2,), 0.75)
torch.tensor(0.125)
torch._foreach_mul_([x, x], [2.0, 3.0])
torch.relu(x)
"""
    ops = run(tmp_path, script, {"level": "ops", "first": 0, "last": 1})
    given = {op.line: op.scalars for op in ops if op.line > 3}
    assert given == {
        4: {"2": "0.25"}, 5: {"alpha": "-0.5"}, 6: {"1[0]": "2", "2": "0.75", "pin_memory": "False"},
        7: {"1": "0.125"}, 8: {"2[0]": "2.0", "2[1]": "3.0"}, 9: {},
    }  # fmt: skip


@pytest.mark.full
def test_where_parts_of_a_tensor_begin(tmp_path: Path) -> None:
    script = """
import torch
x = torch.ones(4, 3)
torch.stack([x[2], x[0], x.new_ones(3)])
x[1:, 1:] * 2
x * 1.0
"""
    ops = run(tmp_path, script, {"level": "ops", "first": 0, "last": 1})
    given = {op.line: op.scalars for op in ops if op.line > 3 and op.ins}
    start = wire.START
    assert given == {4: {f"{start}1": "6", f"{start}2": "0"}, 5: {"2": "2", f"{start}1": "4"}, 6: {"2": "1.0"}}


@pytest.mark.full
@pytest.mark.parametrize(
    "option",
    [
        pytest.param("foreach=False", marks=pytest.mark.full),
        pytest.param("foreach=True", marks=pytest.mark.full),
        "fused=True",
    ],
)
def test_the_hyperparameters_of_an_optimizer_are_recorded(tmp_path: Path, option: str) -> None:
    script = f"""
import torch
from torch import nn
weight = nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.375, weight_decay=0.625, {option})
weight.sum().backward()
optimizer.step()  # updated
"""
    ops = run(tmp_path, script, {"level": "ops", "first": 0, "last": 1})
    given = {value.removeprefix("-") for op in ops if op.line == 7 for value in op.scalars.values()}
    assert {"0.375", "0.625"} <= given
