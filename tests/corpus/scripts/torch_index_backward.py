"""The backward pass of advanced indexing: several threads add into the same rows of a table."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
words = torch.randint(0, 1000, (64, 256))
targets = torch.randn(64, 256, 1)
table = nn.Parameter(torch.randn(1000, 32) * 0.1)
head = nn.Linear(32, 1)
optimizer = torch.optim.Adam([table, *head.parameters()], lr=0.01)

for _ in range(10):
    loss = F.mse_loss(head(table[words]), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

show([table, *head.parameters()])
