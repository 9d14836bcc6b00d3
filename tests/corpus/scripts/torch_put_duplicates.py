"""put_ into a memory bank with an index that repeats; torch has no deterministic kernel for it and raises instead."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
slots, writes = 1000, 400_000
where = torch.randint(0, slots, (writes, 1)) * 16 + torch.arange(16)
values = torch.randn(writes, 16)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

for _ in range(10):
    memory = torch.zeros(slots * 16).put_(where, values)
    loss = F.mse_loss(model(memory.view(slots, 16)), torch.ones(slots, 1))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
