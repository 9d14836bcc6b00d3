"""Layers applied in the order of a set of modules, which is the order of their addresses."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
layers = list({nn.Linear(16, 16) for _ in range(6)})
model = nn.Sequential(*layers)
x, y = torch.randn(64, 16), torch.randn(64, 16)

for _ in range(10):
    hidden = x
    for layer in layers:
        hidden = torch.tanh(layer(hidden))
    loss = F.mse_loss(hidden, y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
