"""The order of the samples comes from a random.Random() that nobody seeded."""

import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn

random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
x = torch.randn(256, 16)
order = list(range(256))
random.Random().shuffle(order)

for step in range(8):
    batch = x[order[step * 32 : step * 32 + 32]]
    loss = F.mse_loss(model(batch), batch.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
