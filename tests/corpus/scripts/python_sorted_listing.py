"""Files that are read in the order of their names, out of a folder whose own order nobody knows."""

import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

with tempfile.TemporaryDirectory() as folder:
    for number in range(40):
        np.save(Path(folder) / f"batch{number}.npy", np.random.default_rng(number).standard_normal((64, 16)))
    for file in sorted(Path(folder).iterdir()):
        x = torch.from_numpy(np.load(file).astype(np.float32))
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
                p.grad = None

show(model.parameters())
