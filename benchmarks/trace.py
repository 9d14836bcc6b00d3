"""Measure the cost of recording every operation, compared with torch's DebugMode, and the time that a trace takes."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trainings import STEP, TRAININGS

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

DEBUG_MODE = """
from torch.utils._debug_mode import DebugMode
_debug = DebugMode({options})
_debug.__enter__()
_hashes = DebugMode.log_tensor_hashes(hash_fn={hash!r}, hash_inputs=True)
_hashes.__enter__()
"""
"""What a user would add to a script. With stacks, it reports lines like detaudit."""

KINDS = {
    "DebugMode, norm": {"hash": "norm", "options": ""},
    "DebugMode, hash_tensor": {"hash": "hash_tensor", "options": ""},
    "DebugMode, hash_tensor, stacks and modules": {
        "hash": "hash_tensor",
        "options": "record_stack_trace=True, record_nn_module=True",
    },
}

RACE = """
import torch, torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
nodes, edges, steps = 500, 200_000, {steps}
to = torch.randint(0, nodes, (edges,))
late = torch.arange(edges) % nodes
x, y = torch.randn(edges, 8), torch.randn(nodes, 1)
model = nn.ModuleDict({{"encoder": nn.Linear(8, 8), "head": nn.Linear(8, 1)}})
for step in range(steps):
    encoded = model["encoder"](x)
    if step < {first}:
        summed = encoded.view(nodes, -1, 8).sum(1) / 20
    else:
        summed = torch.zeros(nodes, 8).index_put_((to,), encoded, accumulate=True) / 20
    F.mse_loss(model["head"](summed), y).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.002 * p.grad
            p.grad = None
"""
"""A race that begins late: from one step on, the messages of a graph are summed with a kernel that races."""


def step_s(code: str, env: dict[str, str]) -> float:
    """Return the CPU time of a step in seconds."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=env, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def instrumented_s(code: str) -> float:
    """Return the CPU time of a step, in seconds, if all its operations are recorded."""
    with tempfile.TemporaryDirectory() as logs:
        watch = json.dumps({"level": "ops", "first": 0, "last": 10**9})
        env = {**os.environ, wire.ENV_LOGS: logs, wire.ENV_WATCH: watch, "PYTHONPATH": str(BOOTSTRAP)}
        return step_s(code, env)


def costs(name: str, count: int) -> None:
    """Print the slowdown of each way to record operations, the median of ``count`` rounds in which all run in turn."""
    model, batch, steps, block = TRAININGS[name]
    steps, block = max(10, steps // 5), max(2, block // 5)
    code = STEP.format(model=model, batch=batch, steps=steps, block=block)
    rounds = []
    for _ in range(count):
        found = {"unrecorded": step_s(code, dict(os.environ)), "detaudit": instrumented_s(code)}
        for kind, options in KINDS.items():
            head, _, loop = code.partition("took = []")
            modes = DEBUG_MODE.format(**options)
            found[kind] = step_s(f"{head}{modes}took = []{loop}", dict(os.environ))
        rounds.append(found)
    plain = statistics.median(found["unrecorded"] for found in rounds)
    print(f"{name}: {plain * 1e3:.2f} ms per step")
    for kind in [kind for kind in rounds[0] if kind != "unrecorded"]:
        ratio = statistics.median(found[kind] / found["unrecorded"] for found in rounds)
        print(f"  {kind}: {ratio:.2f}x", flush=True)


def answer(count: int, steps: int, first: int) -> None:
    """Print the wall time of a trace, and the ratio to it of recording every operation of all steps."""
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(RACE.format(steps=steps, first=first))
        for number in range(count):
            took: list[float] = []
            for options in ([], ["--from-step", "0", "--window", str(steps)]):
                started = time.perf_counter()
                out = ["--out", f"{folder}/{number}-{len(took)}", "--format", "json", "--quiet"]
                done = subprocess.run(
                    [sys.executable, "-m", "detaudit", "trace", "train.py", *options, *out],
                    cwd=folder, check=False, capture_output=True, text=True,
                )  # fmt: skip
                took.append(time.perf_counter() - started)
                found = json.loads(done.stdout)["culprit"]
                if found is None or "index_put_" not in found["op"]:
                    raise SystemExit(f"the race was not found: {done.stdout}{done.stderr}")
            ratios.append(took[1] / took[0])
            print(f"  trace: {took[0]:.1f} s, all operations from step 0: {took[1]:.1f} s", flush=True)
    ratio = statistics.median(ratios)
    print(f"all operations of {steps} steps, with a race from step {first}: {ratio:.2f}x the time of a trace")


def main() -> None:
    """Print the cost of recording every operation, and the time of a trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    for name in TRAININGS:
        costs(name, options.rounds)
    answer(options.rounds, options.steps, options.steps // 2)


if __name__ == "__main__":
    main()
