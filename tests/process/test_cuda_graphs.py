"""What a replay of a CUDA graph trains is compared, although no hook sees what is in it: a fake graph on the CPU."""

import pytest

from tests.process.conftest import Project

FAKE = """
    import os, torch

    base = torch.cuda.CUDAGraph.__mro__[1]  # without a GPU, a class that cannot be instantiated
    capturing = []
    base.__new__ = lambda kind, *_, **__: object.__new__(kind)
    base.__init__ = lambda *_, **__: None
    base.capture_begin = lambda graph, *_, **__: capturing.append(graph)
    base.capture_end = lambda graph: capturing.clear()
    base.replay = lambda graph: replayed()
    torch.cuda.is_initialized = lambda: bool(capturing)
    torch.cuda.is_current_stream_capturing = lambda: bool(capturing)
    torch.cuda.get_rng_state_all = lambda: []

    import training
    training.train(seed=0)
    torch.manual_seed(0)
    noise = int.from_bytes(os.urandom(2), "little") / 1e6
    weight = torch.ones(4, 1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)

    def replayed():
        with torch.no_grad():
            weight.data -= 0.1 + NOISE

    def train(graph):
        graph.capture_begin()
        (torch.ones(8, 4) @ weight - 1).square().mean().backward()
        STEP
        graph.capture_end()
        for _ in range(3):
            graph.replay()
"""

STEPS = {
    "an optimizer in the graph": ("optimizer.step()", "train(torch.cuda.CUDAGraph())", 3),
    "weights by hand in the graph": ("weight.data -= 0.1 * weight.grad", "train(torch.cuda.CUDAGraph())", 3),
    "weights that are dropped": ("optimizer.step()", "train(torch.cuda.CUDAGraph()); del weight, optimizer", 3),
    "an optimizer after the graph": (
        "pass",
        "train(torch.cuda.CUDAGraph()); optimizer.step(); torch.cuda.CUDAGraph().replay()",
        1,
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("way", [pytest.param(way, marks=() if "hand" in way else pytest.mark.slow) for way in STEPS])
def test_what_a_replay_trains_is_compared(project: Project, way: str) -> None:
    step, end, steps = STEPS[way]
    script = FAKE.replace("STEP", step) + f"    {end}\n"
    if "hand" in way:
        script = script.replace("    optimizer = torch.optim.SGD([weight], 0.1)\n", "")
    for noise, code in (("0", 0), ("noise", 1)):
        project.write("train.py", script.replace("NOISE", noise))
        done = project.run("train.py", "--runs", "2")
        (group,) = done.json["groups"]
        assert done.code == code, done.out
        assert [rank["steps"] for rank in group["runs"][0]["ranks"] if rank["framework"] == "torch"] == [steps]
        assert [one["kind"] for one in group["runs"][0]["warnings"]] == []


@pytest.mark.slow
def test_a_graph_that_trains_nothing_is_no_step(project: Project) -> None:
    script = FAKE.replace("(torch.ones(8, 4) @ weight - 1).square().mean().backward()", "torch.ones(8, 4) @ weight")
    project.write("train.py", script.replace("STEP", "pass") + "    train(torch.cuda.CUDAGraph())\n")
    done = project.run("train.py", "--runs", "2")
    assert [rank["framework"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == ["script"]
