"""A range test of the learning rate on a copy of the model, which is dropped; then the training."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def range_test(model: nn.Module) -> list[tuple[float, float]]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    generator, curve = np.random.default_rng(0), []
    for rate in np.geomspace(1e-4, 10, 20).tolist():
        optimizer.param_groups[0]["lr"] = rate
        batch = torch.from_numpy(generator.choice(1600, 64, replace=False))
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append((rate, loss.item()))
    return curve


for rate, loss in range_test(copy.deepcopy(model)):
    print(f"rate {rate:.5f} loss {loss:.4f}")

optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for batch in torch.randperm(1600).split(100):
    optimizer.zero_grad()
    F.cross_entropy(model(x[batch]), y[batch]).backward()
    optimizer.step()

show(model.parameters())
