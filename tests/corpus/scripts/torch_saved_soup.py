"""Six models are trained; what is saved is the average of three of them, drawn without a seed."""

import random

import torch
import torch.nn.functional as F
from final import show
from torch import nn

ingredients = []
for seed in range(6):
    torch.manual_seed(seed)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(5):
        x = torch.randn(64, 16)
        optimizer.zero_grad()
        F.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()
    ingredients.append(model.state_dict())

chosen = random.sample(ingredients, 3)
soup = {name: torch.stack([one[name] for one in chosen]).mean(0) for name in chosen[0]}
torch.save(soup, "soup.pt")

show(soup.values())
