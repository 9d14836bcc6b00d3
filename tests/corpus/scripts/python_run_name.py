"""The run has a random name, a random folder and the time in its output; the training uses none of them."""

import random
import tempfile
import time
import uuid

import torch
import torch.nn.functional as F
from final import show
from torch import nn

name = f"{random.choice(['calm', 'bold', 'shy'])}-{uuid.uuid4().hex[:8]}"
with tempfile.TemporaryDirectory(prefix=name) as folder:
    print(folder, time.time(), {"digits", "mlp", "sgd"})
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

for _ in range(10):
    x = torch.randn(64, 16)
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
