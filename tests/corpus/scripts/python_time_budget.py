"""Training for a budget of time instead of a number of steps."""

import time

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
x = torch.randn(256, 16)
start = time.monotonic()

while time.monotonic() - start < 1.0:
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
