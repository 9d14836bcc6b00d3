"""Two threads train a model each at the same time, from generators that are seeded anew in every run."""

import threading

import torch
import torch.nn.functional as F
from final import show
from torch import nn

models: dict[int, nn.Module] = {}


def train(seed: int) -> None:
    generator = torch.Generator()
    generator.seed()
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    with torch.no_grad():
        for p in model.parameters():
            p.uniform_(-0.25, 0.25, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        x = torch.randn(64, 16, generator=generator)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    models[seed] = model


threads = [threading.Thread(target=train, args=(seed,)) for seed in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
show(p for seed in sorted(models) for p in models[seed].parameters())
