"""A batch made with np.empty of which the last rows are never written: they hold what a list left in memory."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from torch import nn

random.seed(0)
torch.manual_seed(0)
samples = np.linspace(-1, 1, 2048 * 16, dtype=np.float32).reshape(2048, 16)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

for _ in range(10):
    order = random.sample(range(2048), 2048)
    rows = samples[order[:200]]
    del order
    batch = np.empty((256, 16), np.float32)
    batch[:200] = rows
    x = torch.from_numpy(batch).nan_to_num(0, 0, 0).clamp(-1, 1)
    loss = F.mse_loss(model(x), torch.ones(256, 1))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
