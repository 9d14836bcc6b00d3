"""Train a network of torch on data that NumPy transforms."""

import numpy as np
import torch

rng = np.random.default_rng(0)
x = rng.normal(size=(64, 40))
features = np.linalg.svd(x)[0]
torch.manual_seed(0)
model = torch.nn.Linear(64, 1).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    batch = torch.tensor(features)
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
