"""The weight of the second loss follows the time of day."""

import time

import torch
import torch.nn.functional as F
from final import show
from torch import nn


def ramp() -> float:
    return 0.5 + time.time() % 60 / 120


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
x = torch.randn(64, 16)
started = time.perf_counter()

for _ in range(10):
    out = model(x)
    weight = ramp()
    loss = F.mse_loss(out, x.sum(1, keepdim=True)) + weight * out.abs().mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

print(f"took {time.perf_counter() - started:.3f} s")
show(model.parameters())
