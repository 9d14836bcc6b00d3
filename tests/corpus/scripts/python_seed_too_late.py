"""The generators are seeded after the model was built."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
torch.manual_seed(0)

for _ in range(10):
    x = torch.randn(64, 16)
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
