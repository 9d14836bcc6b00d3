"""Stochastic weight averaging: the average gets its BatchNorm statistics from a random quarter of the images."""

import random

import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

for _ in range(3):
    for batch in torch.randperm(1600).split(100):
        optimizer.zero_grad()
        F.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    averaged.update_parameters(model)

quarter = Subset(TensorDataset(x), random.sample(range(1600), 400))
update_bn(DataLoader(quarter, batch_size=100), averaged)

averaged.eval()
with torch.no_grad():
    print(f"accuracy {(averaged(x[1600:]).argmax(1) == y[1600:]).float().mean():.4f}")
torch.save(averaged.state_dict(), "averaged.pt")
show(averaged.state_dict().values())
