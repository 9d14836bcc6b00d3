"""A seeded training of each epoch is followed by an evaluation without randomness, also after the last one."""

import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters())

outputs = torch.empty(0)
for _ in range(3):
    model.train()
    for batch in torch.randperm(1500).split(150):
        optimizer.zero_grad()
        F.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    model.eval()
    outputs = model(x[1500:])
    print(f"accuracy {(outputs.argmax(1) == y[1500:]).float().mean():.4f}")

show([*model.parameters(), outputs])
