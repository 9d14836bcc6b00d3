"""Train a network of torch on data that NumPy draws."""

import numpy as np
import torch

rng = np.random.default_rng(0)
x = rng.normal(size=(64, 40))
torch.manual_seed(0)
model = torch.nn.Linear(40, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.tensor(x).float()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
