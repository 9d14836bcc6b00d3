"""Two causes of different classes: batches from default_rng() without a seed, and a race in the backward pass."""

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
np.random.seed(0)
generator = np.random.default_rng()
table = nn.Parameter(torch.randn(1000, 32) * 0.1)
head = nn.Linear(32, 1)
targets = torch.randn(64, 256, 1)
optimizer = torch.optim.Adam([table, *head.parameters()], lr=0.01)

for _ in range(10):
    words = torch.from_numpy(generator.integers(0, 1000, (64, 256)))
    loss = F.mse_loss(head(table[words]), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

show([table, *head.parameters()])
