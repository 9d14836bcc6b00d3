"""The learning rate follows the process ID, so that parallel jobs search different ones."""

import os

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
rate = 0.001 * (1 + os.getpid() % 97)
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
x = torch.randn(64, 16)

for _ in range(10):
    optimizer.zero_grad()
    F.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()

show(model.parameters())
