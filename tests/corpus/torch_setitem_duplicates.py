"""Writing through an index that names a row more than once: the last of several threads wins."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(8, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
slots, writes = 500, 200_000
where = torch.randint(0, slots, (writes,))
values = torch.randn(writes, 8)
targets = torch.randn(slots, 1)

for _ in range(10):
    memory = torch.zeros(slots, 8)
    memory[where] = encoder(values).detach()
    loss = F.mse_loss(head(memory), targets) + 1e-3 * encoder(values).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
