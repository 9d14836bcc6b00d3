"""A small network on three noisy clusters, trained the same way in every run; only ``noisy_*`` differ from run to run."""

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)


def make_data(rows=128):
    """Return inputs and classes, the same ones in every run."""
    drawn = torch.Generator().manual_seed(7)
    classes = torch.arange(rows) % 3
    centers = torch.randn(3, 8, generator=drawn)
    return centers[classes] + 0.8 * torch.randn(rows, 8, generator=drawn), classes


def make_model():
    """Return the network before its training."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def step(model, x, y):
    """Take one step and return the loss before it, without torch.optim, which takes as long to load as torch."""
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    return loss.item()


def train(epochs=3, each_epoch=None):
    """Train on the first 96 rows; ``each_epoch`` gets the number of the epoch from 1, and its mean loss."""
    model = make_model()
    x, y = make_data()
    for epoch in range(1, epochs + 1):
        total = 0.0
        for start in range(0, 96, 24):
            total += step(model, x[start : start + 24], y[start : start + 24]) / 4
        if each_epoch:
            each_epoch(epoch, total)
    return model


def logits(model):
    """Return what the network says of the other 32 rows."""
    with torch.no_grad():
        return model(make_data()[0][96:])


def noisy_logits(model):
    """Likewise, with noise on top that nobody seeded: what the network returns is equal, what is made of it is not."""
    clean = logits(model)
    return clean + torch.from_numpy(np.random.default_rng().normal(0, 0.3, clean.shape).astype("float32"))


def score(model):
    """Return the loss on the other 32 rows."""
    return nn.functional.cross_entropy(logits(model), make_data()[1][96:]).item()


def noisy_score(model):
    """Return the loss on the other 32 rows, with that noise."""
    return nn.functional.cross_entropy(noisy_logits(model), make_data()[1][96:]).item()
