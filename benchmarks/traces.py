"""How long `detaudit trace` takes to its answer, against recording every operation from the first step on.

A training of 400 steps races from its middle on: the messages of a graph are summed with a kernel that races. Both
have to name that operation. Whole commands in wall time.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import DETAUDIT, seconds
from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios

STEPS = 400
TURNS = 3
GOAL = Goal(1)

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


def trace_s(folder: Path, *options: str) -> float:
    """Return the seconds of a trace. Raises RuntimeError if the race is not found."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        words = ("trace", "train.py", "--no-replay", *options, "--out", f"{out}/out")
        took = seconds([*DETAUDIT, *words], folder, status=1)
        found = json.loads((Path(out) / "out" / "audit.json").read_text())["culprit"]
    if not found or not found["operation"] or "index_put_" not in found["operation"]["name"]:
        raise RuntimeError(f"the race was not found: {found}")
    return took


def measure(scale: Scale) -> Iterator[Row]:
    """Yield the row of one training."""
    steps = scale.size(STEPS, 20)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "train.py").write_text(RACE.format(steps=steps, first=steps // 2))
        actions = {
            "trace": lambda: trace_s(folder),
            "all": lambda: trace_s(folder, "--from-step", "0", "--window", str(steps)),
        }
        turns = in_turn(scale.turns(TURNS), actions)
    yield Row(
        what=f"detaudit trace, {steps} steps with a race from step {steps // 2} on",
        over="with all operations of all steps",
        ratios=ratios(turns, "trace", "all"),
        goal=GOAL,
        also=(Figure(median(turn["trace"] for turn in turns), "s for a trace"),),
    )
