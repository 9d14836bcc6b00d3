"""A padded batch whose tail is never written: the model reads whatever was in memory."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(256, 16), torch.randn(256, 1)

for _ in range(10):
    padded = torch.empty(300, 16)
    padded[:256] = x
    out = model(padded.nan_to_num(0, 0, 0).clamp(-1, 1))
    loss = (out[:256] - y).pow(2).mean() + 1e-3 * out[256:].pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
