"""index_put_ with just enough elements for a second thread, which seldom meets the first in one node."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
nodes, edges = 500, 5000
to = torch.randint(0, nodes, (edges,))
x, y = torch.randn(edges, 8), torch.randn(nodes, 1)
model = nn.ModuleDict({"encoder": nn.Linear(8, 8), "head": nn.Linear(8, 1)})

for _ in range(4):
    summed = torch.zeros(nodes, 8).index_put_((to,), model["encoder"](x), accumulate=True) / 8
    loss = F.mse_loss(model["head"](summed), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
