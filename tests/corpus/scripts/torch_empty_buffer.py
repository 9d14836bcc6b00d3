"""A padded batch whose tail is never written: the model reads what a list left in memory."""

import random

import torch
from final import show
from torch import nn

random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
samples, y = torch.randn(4096, 16), torch.randn(256, 1)

for _ in range(10):
    order = random.sample(range(4096), 4096)
    x = samples[order[:256]]
    del order
    padded = torch.empty(300, 16)
    padded[:256] = x
    out = model(padded.nan_to_num(0, 0, 0).clamp(-1, 1))
    loss = (out[:256] - y).pow(2).mean() + 1e-3 * out[256:].pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
