"""What recording adds to a step of a very small model, in CPU time, bare and recorded runs in turn."""

import os
import statistics
import subprocess
import sys
import tempfile

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

PAIRS = 5

TRAINING = """
import time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
took = []
for _ in range(600):
    started = time.process_time()
    x = torch.randn(64, 16)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    took.append(time.process_time() - started)
print(sorted(took[100:])[250])
"""


def step_s(env: dict[str, str]) -> float:
    """Return the median CPU time of a step in seconds."""
    done = subprocess.run([sys.executable, "-c", TRAINING], env=env, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    """Print the median over the pairs, for the default stages and for all."""
    for name, stages in (("default stages", wire.DEFAULT_STAGES), ("all stages", wire.STAGES)):
        pairs = []
        for _ in range(PAIRS):
            with tempfile.TemporaryDirectory() as trace:
                wires = {wire.ENV_TRACE: trace, wire.ENV_STAGES: ",".join(stages), "PYTHONPATH": str(BOOTSTRAP)}
                pairs.append((step_s(dict(os.environ)), step_s({**os.environ, **wires})))
        bare = statistics.median(b for b, _ in pairs)
        added = statistics.median(r - b for b, r in pairs)
        print(f"{name}: a step of {bare * 1e3:.2f} ms becomes {added * 1e3:.2f} ms longer")


if __name__ == "__main__":
    main()
