"""The averages of the weights are only saved; their decay is drawn from an unseeded generator."""

import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
averages = {name: tensor.clone() for name, tensor in model.state_dict().items()}

for _ in range(10):
    x = torch.randn(64, 16)
    optimizer.zero_grad()
    F.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    decay = random.uniform(0.9, 0.99)
    for name, tensor in model.state_dict().items():
        averages[name] = decay * averages[name] + (1 - decay) * tensor

torch.save({"model": model.state_dict(), "ema": averages}, "checkpoint.pt")

show(averages.values())
