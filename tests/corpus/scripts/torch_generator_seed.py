"""A generator of its own for the data, seeded by Generator.seed(), which draws the seed from the system."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
generator = torch.Generator()
generator.seed()

for _ in range(10):
    x = torch.randn(64, 16, generator=generator)
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
