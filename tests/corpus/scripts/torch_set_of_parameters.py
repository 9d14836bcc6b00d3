"""An optimizer gets a set of parameters, whose order is chance; it treats them all alike."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
temperature = nn.Parameter(torch.ones(()))
optimizer = torch.optim.Adam({*model.parameters(), temperature}, lr=1e-2)
for _ in range(20):
    x = torch.randn(64, 16)
    loss = F.mse_loss(model(x) * temperature, x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
show([*model.parameters(), temperature])
