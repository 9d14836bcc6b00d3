"""Recognize handwritten digits with torch: every pixel's intensity is a token with an embedding of its own.

All seeds are set, as the guides recommend. Every run still gives a different result.
"""

import random

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)

EPOCHS, BATCH, WIDTH, LEVELS = 6, 256, 32, 17


class DigitModel(nn.Module):
    """Classify the sum of 64 embeddings, one for the place and intensity of each pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(64 * LEVELS, WIDTH) * 0.1)
        self.head = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 10))
        self.register_buffer("offsets", torch.arange(64) * LEVELS)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the logits (N, 10) of images (N, 64) with intensities 0 to 16."""
        return self.head(self.table[pixels + self.offsets].sum(1))


def main() -> None:
    """Train for a few epochs and print the loss and the accuracy."""
    data = load_digits()
    pixels = torch.from_numpy(data.data).long()
    labels = torch.from_numpy(data.target)
    augment = np.random.default_rng()
    model = DigitModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        for batch in torch.randperm(1500).split(BATCH):
            noise = torch.from_numpy(augment.integers(-1, 2, size=(len(batch), 64)))
            images = (pixels[batch] + noise).clamp(0, LEVELS - 1)
            loss = F.cross_entropy(model(images), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = (model(pixels[1500:]).argmax(1) == labels[1500:]).float().mean()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {accuracy.item():.1%}")


if __name__ == "__main__":
    main()
