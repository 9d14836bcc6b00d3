"""Three causes of different classes: a set of strings, an unseeded global generator, a race in the backward pass."""

import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
vocabulary = {word: number for number, word in enumerate({f"word{i}" for i in range(1000)})}
numbers = torch.tensor([vocabulary[f"word{i}"] for i in range(1000)])
table = nn.Parameter(torch.randn(1000, 32) * 0.1)
head = nn.Linear(32, 1)
targets = torch.randn(64, 256, 1)
optimizer = torch.optim.Adam([table, *head.parameters()], lr=0.01)

for _ in range(10):
    words = numbers[torch.tensor([random.randrange(1000) for _ in range(64 * 256)])].view(64, 256)
    loss = F.mse_loss(head(table[words]), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

show([table, *head.parameters()])
