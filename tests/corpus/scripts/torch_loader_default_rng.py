"""Each worker of a DataLoader augments with a default_rng() of its own that nobody seeded."""

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    generator = None

    def __len__(self) -> int:
        return 256

    def __getitem__(self, index: int) -> torch.Tensor:
        self.generator = self.generator or np.random.default_rng()
        return torch.full((16,), index / 256) + torch.from_numpy(self.generator.normal(0, 0.1, 16).astype(np.float32))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

for x in DataLoader(Augmented(), batch_size=16, num_workers=2):
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
