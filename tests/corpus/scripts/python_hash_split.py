"""A train and test split of the samples by hash(str)."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
samples = torch.randn(1000, 16)
x = samples[[i for i in range(1000) if hash(f"sample-{i}") % 10 < 8]]
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

for _ in range(10):
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
