"""Batches made by a pool of processes and taken with imap_unordered: first come, first trained."""

import multiprocessing

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from torch import nn


def batch(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal((256, 16)).astype(np.float32)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    with multiprocessing.Pool(2) as pool:
        for made in pool.imap_unordered(batch, range(60)):
            x = torch.from_numpy(made)
            loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad
                    p.grad = None
    show(model.parameters())
