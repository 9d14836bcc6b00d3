"""Every style of torch training is recorded: steps, losses and weights. Recording changes nothing."""

import subprocess
import sys

import pytest

from tests.process.conftest import Project

COMMON = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
mse = nn.MSELoss()
def data():
    x = torch.randn(32, 8)
    return x, x.sum(1, keepdim=True)
"""

END = """
import hashlib
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print(f"{sum(p.detach().double().sum().item() for p in model.parameters()):.17g} {hashlib.sha256(weights).hexdigest()}")
"""

STYLES = {
    "gan": (
        8,
        """
critic = nn.Linear(1, 1)
for_model, for_critic = torch.optim.Adam(model.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(4):
    x, y = data()
    loss = critic(model(x).detach()).mean() - critic(y).mean()
    for_critic.zero_grad(); loss.backward(); for_critic.step()
    loss = -critic(model(x)).mean()
    for_model.zero_grad(); loss.backward(); for_model.step()
""",
    ),
    "lbfgs": (
        3,
        """
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
x, y = data()
def closure():
    optimizer.zero_grad()
    loss = mse(model(x), y)
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(closure)
""",
    ),
    "accumulation": (
        3,
        """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    for _ in range(4):
        x, y = data()
        (mse(model(x), y) / 4).backward()
    optimizer.step()
""",
    ),
    "grad-scaler": (
        4,
        """
optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
for _ in range(4):
    x, y = data()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = mse(model(x).float(), y)
    scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
""",
    ),
    "autograd-grad": (
        5,
        """
weights = list(model.parameters())
for _ in range(5):
    x, y = data()
    gradients = torch.autograd.grad(mse(model(x), y), weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients): weight -= 0.1 * gradient
""",
    ),
    "torch-func": (
        5,
        """
from torch.func import functional_call, grad_and_value
weights = {k: v.detach().clone() for k, v in model.named_parameters()}
step = grad_and_value(lambda weights, x, y: mse(functional_call(model, weights, (x,)), y))
for _ in range(5):
    gradients, loss = step(weights, *data())
    weights = {k: v - 0.1 * gradients[k] for k, v in weights.items()}
""",
    ),
    "checkpointing": (
        4,
        """
from torch.utils.checkpoint import checkpoint
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    x, y = data()
    loss = mse(checkpoint(model, x, use_reentrant=False), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
""",
    ),
    "compiled-model": (
        4,
        """
optimizer, compiled = torch.optim.SGD(model.parameters(), lr=0.1), torch.compile(model, backend="aot_eager")
for _ in range(4):
    x, y = data()
    loss = mse(compiled(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
""",
    ),
    "compiled-step": (
        4,
        """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="aot_eager")
def step(x, y):
    loss = mse(model(x), y)
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    return loss
for _ in range(4):
    step(*data())
""",
    ),
    "compiled-optimizer": (
        4,
        """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
update = torch.compile(lambda: optimizer.step(), backend="aot_eager")
for _ in range(4):
    x, y = data()
    loss = mse(model(x), y)
    optimizer.zero_grad(); loss.backward(); update()
""",
    ),
    "users-own-optimizer": (
        4,
        """
class Mine(torch.optim.Optimizer):
    def __init__(self, params): super().__init__(params, {})
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]: p.add_(p.grad, alpha=-0.1)
optimizer = Mine(model.parameters())
for _ in range(4):
    x, y = data()
    loss = mse(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
""",
    ),
    "loader-workers": (
        4,
        """
from torch.utils.data import DataLoader, TensorDataset
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(*data()), 8, shuffle=True, num_workers=2):
    loss = mse(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
""",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_style(project: Project, style: str) -> None:
    steps, body = STYLES[style]
    end = "" if style == "torch-func" else END  # its weights are no parameters
    project.write("train.py", COMMON + body + end)
    bare = subprocess.run([sys.executable, "train.py"], cwd=project.folder, capture_output=True, text=True, check=True)
    done = project.run("train.py", "--runs", "1", "--out", "results")
    run = done.json["groups"][0]["runs"][0]
    assert (run["status"], run["steps"]) == ("ok", steps)
    assert run["warnings"] == []
    assert len(run["ranks"]) == 1
    (rank,) = run["ranks"]
    recorded = (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text()
    assert recorded == bare.stdout
    assert 0 < abs(rank["final_loss"]) < 100
    if end and style != "gan":
        assert float(bare.stdout.split()[0]) == pytest.approx(rank["sum_of_weights"], rel=1e-12)


MIXED = [
    [style for style in STYLES if style not in {"autograd-grad", "torch-func", "compiled-step", "compiled-optimizer"}],
    ["autograd-grad", "torch-func"],
    ["compiled-step", "compiled-optimizer"],
]
"""Styles that one process can mix: once an optimizer was recorded, the first two steps by hand count as one."""


@pytest.mark.slow
@pytest.mark.parametrize("styles", MIXED, ids=lambda styles: styles[0])
def test_styles_in_one_process(project: Project, styles: list[str]) -> None:
    scripts = [COMMON + STYLES[style][1] + ("" if style == "torch-func" else END) for style in styles]
    project.write("train.py", "".join(scripts))
    bare = subprocess.run([sys.executable, "train.py"], cwd=project.folder, capture_output=True, text=True, check=True)
    done = project.run("train.py", "--runs", "1", "--out", "results")
    run = done.json["groups"][0]["runs"][0]
    assert (run["status"], run["steps"]) == ("ok", sum(STYLES[style][0] for style in styles))
    assert run["warnings"] == []
    assert len(run["ranks"]) == 1
    assert (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text() == bare.stdout


@pytest.mark.slow
def test_three_ranks_of_torchrun_are_a_row_each(project: Project) -> None:
    project.write(
        "train.py",
        COMMON
        + """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
torch.set_num_threads(1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x, y = data()
    loss = mse(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
dist.destroy_process_group()
""",
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", "train.py"]
    done = project.run("--runs", "2", "--", *torchrun)
    assert done.code == 0, done.out
    ranks = done.json["groups"][0]["runs"][0]["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1, 2]
    assert len({rank["digest"] for rank in ranks}) == 1
    assert done.json["groups"][0]["replicas"] == {"ranks": 3, "run": 1, "first_difference": None}
    assert len({rank["final_loss"] for rank in ranks}) == 3  # of different data


def test_arguments_of_any_kind_do_not_disturb_a_forward_pass(project: Project) -> None:
    project.write(
        "train.py",
        """
        import torch
        class Odd:
            values = keys = 7
            def __iter__(self): raise RuntimeError("not for you")
        class Model(torch.nn.Linear):
            def forward(self, x, odd, table=None): return super().forward(x)
        torch.manual_seed(0)
        model = Model(4, 1)
        model(torch.ones(2, 4), Odd(), table={"odd": [Odd()]}).sum().backward()
        """,
    )
    done = project.run("train.py", "--runs", "1")
    run = done.json["groups"][0]["runs"][0]
    assert (run["status"], run["steps"], run["warnings"]) == ("ok", 1, [])
