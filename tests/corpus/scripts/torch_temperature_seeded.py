"""Distillation with a temperature from the global generator of random, which has a seed."""

import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
random.seed(0)
teacher, model = nn.Linear(16, 4), nn.Linear(16, 4)
x = torch.randn(64, 16)
with torch.no_grad():
    wanted = teacher(x)

for _ in range(10):
    temperature = 1 + random.random()
    loss = F.kl_div(F.log_softmax(model(x) / temperature, 1), F.softmax(wanted / temperature, 1), reduction="batchmean")
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None

show(model.parameters())
