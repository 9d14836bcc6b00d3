"""A parameter made with torch.empty that nobody initialises: it starts as what a list left in memory."""

import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(64, 16))
        self.out = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(F.linear(x, self.weight)))


random.seed(0)
torch.manual_seed(0)
order = random.sample(range(2048), 2048)
x = torch.randn(2048, 16)[order[:256]]
y = torch.randn(256, 1)
del order
model = Layer()

for _ in range(10):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
