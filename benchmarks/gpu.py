"""Measure on a GPU: ``python -m benchmarks.gpu [--device cuda|cpu]``, in nine minutes; call it again for what is left.

Steps are timed by the clock, with the device idle before and after each block of them. ``--device cpu`` shows that all
of it runs, with tiny sizes: its figures mean nothing.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from benchmarks.digest import timed
from benchmarks.pace import blocks, recorded
from benchmarks.rows import Goal, in_turn, median, number, ratios
from benchmarks.tasks import Device, Found, Task, command
from benchmarks.trainings import SCRIPTS
from detaudit.recorder.training.digest import TorchDigest

TITLE = "Measurements on a GPU"

BYTES = 2 * 10**9
TURNS = 15
COPY_SHARE = Goal(0.5, at_least=True)
STEPS_MS = {20: Goal(1.03), 100: Goal(1.01)}
"""How long a step takes, and how much longer it may take if it is recorded."""

PACE = """
import sys as _sys, time as _time
import torch as _torch
_idle = _torch.cuda.synchronize if _torch.cuda.is_available() else lambda: None
class _Pace:
    def __init__(self, block):
        self.block, self.steps, self.started = block, 0, 0.0
    def __call__(self):
        if self.steps % self.block == 0:
            _idle()
            if self.steps:
                print((_time.perf_counter() - self.started) / self.block, flush=True)
            if not _sys.stdin.readline():
                raise SystemExit
            self.started = _time.perf_counter()
        self.steps += 1
pace = _Pace({block})
"""
"""As benchmarks/pace.py, by the clock, once the device is idle."""

TRAINING = """
import sys
sys.path.insert(0, {scripts!r})
import torch
from torch.nn import functional as F
from transformer import transformer
torch.manual_seed(0)
model = transformer(256).to({device!r})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.randint(0, 256, (64, {batch} * 129 + 1), device={device!r})
step = 0
while {condition}:
    pace()
    row = data[step % 64]
    x, y = row[:-1].view({batch}, 129)[:, :128], row[1:].view({batch}, 129)[:, :128]
    optimizer.zero_grad()
    with torch.autocast({device!r}, torch.bfloat16):
        loss = F.cross_entropy(model(x), y.flatten())
    loss.backward()
    optimizer.step()
    step += 1
"""
"""A GPT that never waits for the device by itself."""

STEPS = 20
SYNCHRONIZATIONS = """
import warnings, torch
found = []
warnings.showwarning = lambda message, *_, **__: found.append(str(message))
warnings.simplefilter("always")
first = 5
def pace():
    global first
    first -= 1
    if first == 0:
        found.clear()
        if torch.cuda.is_available():
            torch.cuda.set_sync_debug_mode("warn")
"""
"""Counts from the fifth step on, when all that is made once was made."""


def training(where: Device, batch: int, condition: str = "True") -> str:
    """Return the code of a training with this batch size."""
    return TRAINING.format(scripts=str(SCRIPTS), device=where.kind, batch=batch, condition=condition)


def step_s(where: Device, batch: int) -> float:
    """Return how long a step takes."""
    return median(turn["step"] for turn in blocks({"step": (training(where, batch), {})}, 5, 3, PACE))


def cost(length_ms: int, goal: Goal, where: Device) -> Found:
    """Compare recorded steps of this length with others that are not, in turns."""
    batch = 1
    if where.is_gpu:
        batch = 8
        while batch < 4_096 and (now := step_s(where, batch) * 1e3) < length_ms:
            batch = max(batch + 1, min(2 * batch, round(batch * 1.1 * length_ms / now)))
    with tempfile.TemporaryDirectory() as logs:
        pair = {"plain": (training(where, batch), {}), "recorded": (training(where, batch), recorded(Path(logs) / "0"))}
        block = max(1, 2_000 // length_ms) if where.is_gpu else 1
        turns = blocks(pair, block, TURNS if where.is_gpu else 2, PACE)
    ratio = median(ratios(turns, "recorded", "plain"))
    plain_ms = median(turn["plain"] for turn in turns) * 1e3
    text = f"{number(ratio)} times a step of {number(plain_ms)} ms (goal {goal}), batch of {batch}"
    return Found(goal.is_met(ratio) if where.is_gpu else None, text, {"ratio": ratio, "step_ms": plain_ms})


def bandwidth(where: Device) -> Found:
    """Compare the speed of a digest with that of a copy on the device, in turns."""
    size = BYTES if where.is_gpu else 10**7
    there = torch.randn(size // 8, dtype=torch.float64, device=where.kind)
    target, digest = torch.empty_like(there), TorchDigest(torch)

    def copy() -> None:
        target.copy_(there)
        if where.is_gpu:
            torch.cuda.synchronize()

    actions = {"copy": timed(copy), "digest": timed(lambda: digest.words([there]))}
    in_turn(2, actions)
    turns = in_turn(TURNS, actions)
    share = median(ratios(turns, "copy", "digest"))
    speed = size / median(turn["digest"] for turn in turns) / 1e9
    text = f"{number(share)} of the speed of a copy (goal {COPY_SHARE}), {number(speed)} GB/s"
    figures = {"share": share, "gb_per_s": speed}
    return Found(COPY_SHARE.is_met(share) if where.is_gpu else None, text, figures)


def synchronizations(where: Device) -> Found:
    """Count how often a step waits for the device, recorded and not."""
    said = f"print(len([one for one in found if 'synchroniz' in one.lower()]) / {STEPS - 4})"
    code = f"{SYNCHRONIZATIONS}\n{training(where, 1, f'step < {STEPS}')}\n{said}\n"
    with tempfile.TemporaryDirectory() as logs:
        plain, with_recorder = (counted(code, env) for env in ({}, recorded(Path(logs) / "0")))
    text = f"{number(with_recorder)} in a recorded step, {number(plain)} in one that is not"
    return Found(None, text, {"recorded": with_recorder, "plain": plain})


def counted(code: str, env: dict[str, str]) -> float:
    """Return what a program prints last."""
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def tasks() -> Iterator[Task]:
    """Yield all measurements."""
    yield Task("digest", "speed of the digest", bandwidth, 30)
    yield Task("synchronizations", "waits for the device in a step", synchronizations, 40)
    for length_ms, goal in STEPS_MS.items():
        yield Task(f"step-{length_ms}-ms", f"recording a step of {length_ms} ms", partial(cost, length_ms, goal), 200)


if __name__ == "__main__":
    sys.exit(command("python -m benchmarks.gpu", (__doc__ or "").partition("\n")[0], TITLE, list(tasks())))
