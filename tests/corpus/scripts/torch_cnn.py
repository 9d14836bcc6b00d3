"""A convolutional network with batch norm, dropout and AdamW, seeded."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(32, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(5):
    x = torch.randn(32, 3, 32, 32)
    loss = F.cross_entropy(model(x), torch.randint(0, 10, (32,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

show(model.parameters())
