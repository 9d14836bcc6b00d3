"""What the recorder reads stays as it was: tensors, descriptors, signal handlers. And what it needs it keeps."""

from typing import Any

import pytest

from detaudit.runs.log_text import entries
from tests.process.conftest import Project
from tests.process.test_neutral import bare_and_recorded

TRAINING = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
"""

TENSORS = """
    from torch.overrides import TorchFunctionMode
    from training import *

    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    class Wrapped(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs)

    buffer = torch.empty(0)
    for size in (5, 9, 3):
        buffer.resize_(size, 6).normal_()
        step(buffer)
    with Mode():
        step(torch.randn(4, 6))
    step(torch.randn(4, 6).as_subclass(Wrapped))
    step(torch.empty(0).set_(buffer.untyped_storage(), 0, (3, 6), (6, 1)))
    step(torch.randn(8, 6).share_memory_())
    step(torch.randn(6, 7).T)
    model.eval()
    with torch.inference_mode():
        model(torch.randn(2, 6))
    print(torch.func.vmap(model)(torch.randn(2, 3, 6)).sum().item())
    model(buffer)
    print(seen, buffer._version, [(p._version, p.untyped_storage().resizable()) for p in model.parameters()])
    nn.Module.double(model)
    torch.utils.swap_tensors(model[0].weight, nn.Parameter(torch.ones(6, 6, dtype=torch.double)))
    step(torch.randn(4, 6).double())
    model[2].weight.untyped_storage().resize_(0)
    print([float(p.detach().sum()) for p in model[0].parameters()])
"""


def recorded_lines(project: Project) -> list[dict[str, Any]]:
    logs = sorted((project.folder / "logs").glob("*.jsonl"))
    return [line for path in logs for line in entries(path)]


@pytest.mark.full
def test_no_tensor_is_changed_by_being_read(project: Project) -> None:
    project.write("training.py", TRAINING)
    project.write("train.py", TENSORS)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert bare.returncode == 0, bare.stderr
    assert (bare.stdout, bare.stderr, bare.returncode) == (recorded.stdout, recorded.stderr, recorded.returncode)
    lines = recorded_lines(project)
    assert not [line for line in lines if line["k"] == "trouble"]
    assert max(line["step"] for line in lines if line.get("stage") == "update") == 9


SHARDED = """
    import os
    import torch, torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(int(os.environ["RANK"]))
    for step in range(3):
        x = torch.randn(16, 8, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
"""


@pytest.mark.slow
def test_a_sharded_model_whose_storages_are_freed_and_filled_again(project: Project) -> None:
    project.write("train.py", SHARDED)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    stages = ("--stages", "init,rng,batch,forward,backward,update,state")
    done = project.run("--runs", "2", *stages, "--", *project.command()[:1], *launcher)
    assert (done.code, done.json["groups"][0]["verdict"]) == (0, "deterministic"), done.err
    assert [rank["steps"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == [3, 3]


DESCRIPTORS = """
    import os
    import training

    training.train(steps=1, seed=0)
    if "daemon" in os.sys.argv:
        if os.fork():
            os.wait()
            os._exit(0)
        os.setsid()
    os.closerange(3, 4096)
    files = [open(f"{number}.csv", "w") for number in range(8)]
    print(training.train(seed=1))
    for file in files:
        file.write("a,b")
        file.close()
    print([os.path.getsize(file.name) for file in files])
"""


@pytest.mark.parametrize("words", [(), ("daemon",)])
def test_a_script_that_closes_all_descriptors(project: Project, words: tuple[str, ...]) -> None:
    project.write("train.py", DESCRIPTORS)
    bare, recorded = bare_and_recorded(project, "train.py", *words)
    assert bare.stdout.endswith("[3, 3, 3, 3, 3, 3, 3, 3]\n")
    assert (bare.stdout, bare.stderr) == (recorded.stdout, recorded.stderr)
    steps = [line["step"] for line in recorded_lines(project) if line.get("stage") == "update"]
    assert sorted(steps)[-3:] == ([1, 2, 3] if words else [2, 3, 4])


DROPPED = """
    import resource
    import torch
    from torch import nn

    def train(size):
        model = nn.Linear(size, 1000)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(2, size)).square().mean().backward()
        optimizer.step()
        return model.weight

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10

    torch.manual_seed(0)
    train(10)
    train(20_000)
    before = peak()
    model = nn.Linear(40_000, 1000)  # as large as the weights and gradients that were dropped
    print(peak() - before < 40)

    weight = train(10)
    torch.utils.swap_tensors(weight, nn.Parameter(torch.ones(1000, 10)))
    for _ in range(1000):
        train(3)
"""


@pytest.mark.slow
def test_a_model_that_was_dropped_is_not_kept(project: Project) -> None:
    project.write("train.py", DROPPED)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert (bare.stdout, bare.stderr) == ("True\n", "")
    assert (recorded.stdout, recorded.stderr) == ("True\n", "")
    final = next(line for line in recorded_lines(project) if line["k"] == "final")
    assert (final["steps"], final["params"]) == (1003, 2006)


DEEP = """
    import sys
    import torch
    from torch import nn

    class Deep(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return x.square().mean() if self.inner is None else self.inner(x)

    def runs(depth):
        model = None
        for _ in range(depth):
            model = Deep(model)
        try:
            return model(torch.ones(3)) is not None
        except RecursionError:
            return False

    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(5, 3)
    reached = 0

    def recurse(depth):
        global reached
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        reached = depth
        recurse(depth + 1)

    if "nested" in sys.argv:
        print(max(depth for depth in range(200, 340) if runs(depth)))
    else:
        try:
            recurse(0)
        except RecursionError:
            print(reached, sys.getrecursionlimit())
"""


@pytest.mark.full
@pytest.mark.parametrize("words", [(), pytest.param(("nested",), marks=pytest.mark.slow)])
def test_a_script_recurses_as_deep_as_without_the_recorder(project: Project, words: tuple[str, ...]) -> None:
    project.write("train.py", DEEP)
    bare, recorded = bare_and_recorded(project, "train.py", *words)
    assert (bare.returncode, bare.stderr) == (recorded.returncode, recorded.stderr) == (0, "")
    if words:
        assert int(recorded.stdout) >= int(bare.stdout) > 200
    else:
        assert bare.stdout == recorded.stdout
    assert not [line for line in recorded_lines(project) if line["k"] == "trouble"]


CAPTURE = """
    import torch
    from training import *

    def forbidden(*_):
        raise SystemExit("read during a capture")

    capturing = False
    torch.cuda.is_initialized = lambda: capturing
    torch.cuda.is_current_stream_capturing = lambda: True
    torch.cuda.get_rng_state_all = forbidden
    x = torch.randn(4, 6)
    for number in range(6):
        capturing = number == 3
        step(x)
"""


@pytest.mark.full
def test_nothing_is_read_while_a_cuda_graph_is_captured(project: Project) -> None:
    project.write("training.py", TRAINING)
    project.write("train.py", CAPTURE)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert bare.returncode == 0, bare.stderr
    assert (bare.stdout, bare.stderr, bare.returncode) == (recorded.stdout, recorded.stderr, recorded.returncode)
    assert max(line["step"] for line in recorded_lines(project) if line.get("stage") == "update") == 5
