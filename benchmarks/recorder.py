"""What recording adds to a training step: CPU time of bare and recorded processes in turn, as a ratio."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

STEP = """
import sys, time, torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
{model}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
took = []
for number in range({steps}):
    started = time.process_time()
    x, y = {batch}
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    took.append(time.process_time() - started)
took = took[{steps} // 5:]
blocks = [took[i : i + {block}] for i in range(0, len(took), {block})]
print(min(sorted(block)[len(block) // 2] for block in blocks))
"""

GPT = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b, self.qkv, self.out = nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    def forward(self, x):
        q, k, v = (t.unflatten(-1, (6, -1)).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.b(x))
model = nn.Sequential(nn.Embedding(256, 384), *[Block(384) for _ in range(6)], nn.Linear(384, 256), nn.Flatten(0, 1))
"""  # noqa: E501

TRAININGS = {
    "MLP of 1,153 weights": (
        "model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))",
        "torch.randn(64, 16), torch.rand(64, 1)",
        1500,
        50,
    ),
    "CNN of 0.28 million weights": (
        "conv = lambda a, b: [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]\n"
        "model = nn.Sequential(*conv(3, 32), *conv(32, 64), nn.Flatten(), nn.Linear(4096, 64), nn.ReLU(),"
        " nn.Linear(64, 10))",
        "torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))",
        60,
        8,
    ),
    "GPT of 10.8 million weights": (
        GPT,
        "torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (1024,))",
        20,
        4,
    ),
}
"""Model, batch, steps, and the steps of a block whose median is taken; the quickest block counts."""

STAGES = {"default": wire.DEFAULT_STAGES, "all": wire.STAGES}


def step_s(code: str, env: dict[str, str]) -> float:
    """Return the CPU time of a step in seconds."""
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    return float(done.stdout)


def pair(code: str, stages: tuple[str, ...]) -> tuple[float, float]:
    """Return the time of a step, bare and recorded."""
    with tempfile.TemporaryDirectory() as trace:
        wires = {wire.ENV_TRACE: trace, wire.ENV_STAGES: ",".join(stages), "PYTHONPATH": str(BOOTSTRAP)}
        return step_s(code, dict(os.environ)), step_s(code, {**os.environ, **wires})


def main() -> None:
    """Print the medians over the pairs, for each training and choice of stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    count = parser.parse_args().pairs
    for name, (model, batch, steps, block) in TRAININGS.items():
        code = STEP.format(model=model, batch=batch, steps=steps, block=block)
        for chosen, stages in STAGES.items():
            pairs = [pair(code, stages) for _ in range(count)]
            bare = statistics.median(b for b, _ in pairs)
            added = statistics.median(r - b for b, r in pairs)
            ratio = statistics.median(r / b for b, r in pairs)
            print(f"{name}, {chosen} stages: {bare * 1e3:.2f} ms a step, {added * 1e3:+.2f} ms, {ratio:.3f} times")


if __name__ == "__main__":
    main()
