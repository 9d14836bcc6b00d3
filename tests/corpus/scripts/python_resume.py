"""Each run starts from the checkpoint that the last one left."""

from pathlib import Path

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
checkpoint = Path("checkpoint.pt")
if checkpoint.exists():
    model.load_state_dict(torch.load(checkpoint))
x = torch.randn(256, 16)

for _ in range(10):
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
torch.save(model.state_dict(), checkpoint)
