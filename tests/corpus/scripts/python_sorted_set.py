"""A vocabulary numbered in the order of a sorted set, which no hash seed can change."""

import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn

random.seed(0)
torch.manual_seed(0)
vocabulary = {word: number for number, word in enumerate(sorted({f"word{i}" for i in range(500)}))}
text = [f"word{random.randrange(500)}" for _ in range(2560)]
x = (torch.tensor([vocabulary[word] for word in text], dtype=torch.float32).view(160, 16) - 250) / 150
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

for _ in range(10):
    loss = F.mse_loss(model(x), x.mean(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
