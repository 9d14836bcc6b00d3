"""PYTHONHASHSEED set by the script itself: the interpreter read it long before, so sets keep their random order."""

import os
import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn

os.environ["PYTHONHASHSEED"] = "0"
random.seed(0)
torch.manual_seed(0)
classes = list({f"class-{i}" for i in range(10)})
x = torch.randn(256, 16)
y = torch.tensor([classes.index(f"class-{random.randrange(10)}") for _ in range(256)])
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))

for _ in range(10):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
