"""index_copy_ into a memory bank with an index that repeats: which copy is last depends on the threads."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
slots, writes = 100, 200_000
where = torch.randint(0, slots, (writes,))
values = torch.randn(writes, 16)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

for _ in range(10):
    memory = torch.zeros(slots, 16).index_copy_(0, where, values)
    loss = F.mse_loss(model(memory), torch.ones(slots, 1))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
