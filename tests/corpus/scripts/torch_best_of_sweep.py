"""Four models are trained; the one that is saved is the best on a validation set that is drawn without a seed."""

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn

images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
tried = []
for seed in range(4):
    torch.manual_seed(seed)
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    for batch in torch.randperm(1600).split(200):
        optimizer.zero_grad()
        F.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    tried.append(model)

held_out = 1600 + np.random.default_rng().choice(197, 8, replace=False)
with torch.no_grad():
    losses = [F.cross_entropy(model(x[held_out]), y[held_out]).item() for model in tried]
chosen = tried[losses.index(min(losses))]
torch.save(chosen.state_dict(), "best.pt")

show(chosen.parameters())
