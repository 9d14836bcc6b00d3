"""The clock is read at every step, for the log only."""

import time

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
x = torch.randn(64, 16)
before = time.time()

for step in range(10):
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None
    now = time.time()
    rate = torch.tensor(64.0) / (now - before + 1e-9)
    print(f"step {step}: {rate.item():.0f} samples/s")
    before = now

show(model.parameters())
