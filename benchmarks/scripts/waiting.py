"""A training that takes so many seconds; most of a step is spent waiting, as for a device.

A second argument says how many flags it needs: 1 seeds NumPy's generator, 2 also that of Python.
"""

import random
import sys
import time

import numpy as np
import torch

STEP_S = 0.1


def main() -> None:
    """Train a small model on data that is augmented without a seed."""
    seconds, needed = float(sys.argv[1]), int(sys.argv[2])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(64, 8)
    augment = np.random.default_rng()
    loss = torch.zeros(())
    for _ in range(int(seconds / STEP_S)):
        started = time.monotonic()
        scale = random.random() if needed > 1 else 1.0
        x = data + scale * torch.as_tensor(augment.random((64, 8)), dtype=torch.float32)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        time.sleep(max(0.0, STEP_S - (time.monotonic() - started)))
    print(loss.item())


if __name__ == "__main__":
    main()
