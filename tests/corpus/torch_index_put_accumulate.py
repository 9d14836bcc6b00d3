"""Messages of a graph's edges summed into its nodes with index_put_: several threads add into one node."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
nodes, edges = 500, 200_000
to = torch.randint(0, nodes, (edges,))
features = torch.randn(edges, 8)
targets = torch.randn(nodes, 1)
encoder, head = nn.Linear(8, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.002)

for _ in range(10):
    summed = torch.zeros(nodes, 8).index_put_((to,), encoder(features), accumulate=True) / 20
    loss = F.mse_loss(head(summed), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
