"""Generators of its own, each with a seed: random.Random(0), default_rng(0) and a torch.Generator."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
numbers, of_torch, of_python = np.random.default_rng(0), torch.Generator().manual_seed(0), random.Random(0)

for _ in range(10):
    x = torch.from_numpy(numbers.standard_normal((64, 16)).astype(np.float32))
    x += 0.1 * torch.randn(64, 16, generator=of_torch) + of_python.random()
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
