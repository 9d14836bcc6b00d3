"""index_add and scatter_add with many duplicates: on a CPU they add in order."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
nodes, edges = 500, 200_000
to = torch.randint(0, nodes, (edges,))
x, y = torch.randn(edges, 8), torch.randn(nodes, 1)
encoder, head = nn.Linear(8, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.001)

for _ in range(10):
    added = torch.zeros(nodes, 8).index_add(0, to, encoder(x))
    scattered = torch.zeros(nodes, 8).scatter_add(0, to[:, None].expand(-1, 8), encoder(x))
    loss = F.mse_loss(head((added + scattered) / 400), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
