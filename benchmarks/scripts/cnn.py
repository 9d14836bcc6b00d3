"""Train a CNN on scikit-learn's digits with torch, for so many steps; a second argument plants a difference at one."""

import os
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

BATCH = 64


def main() -> None:
    """Train, and print the last loss."""
    steps, planted = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    for step in range(1, steps + 1):
        chosen = torch.randint(0, len(labels), (BATCH,))
        batch = images[chosen]
        if step == planted:
            batch += int.from_bytes(os.urandom(4), "big") / 2**32
        loss = F.cross_entropy(model(batch), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
