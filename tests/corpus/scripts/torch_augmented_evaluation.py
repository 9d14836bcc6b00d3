"""A seeded training, then a test with random augmentation whose generator has no seed: only the test differs."""

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
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for batch in torch.randperm(1500).split(150):
    optimizer.zero_grad()
    F.cross_entropy(model(x[batch]), y[batch]).backward()
    optimizer.step()

model.eval()
noise = np.random.default_rng()
with torch.no_grad():
    views = [model(x[1500:] + 0.1 * torch.tensor(noise.normal(size=(297, 64)), dtype=torch.float32)) for _ in range(4)]
print(f"accuracy {(torch.stack(views).mean(0).argmax(1) == y[1500:]).float().mean():.4f}")
show([*model.parameters(), *views])
