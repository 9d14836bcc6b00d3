"""A thread evaluates the newest snapshot of the model until the training ends: how often is chance, and not kept."""

import copy
import threading

import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
snapshot = copy.deepcopy(model).eval()
ended = threading.Event()


def evaluate() -> None:
    while not ended.is_set():
        with torch.no_grad():
            accuracy = (snapshot(x[1600:]).argmax(1) == y[1600:]).float().mean()
        print(f"accuracy {accuracy:.4f}", flush=True)


evaluation = threading.Thread(target=evaluate)
evaluation.start()
for _ in range(3):
    for batch in torch.randperm(1600).split(100):
        optimizer.zero_grad()
        F.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    snapshot = copy.deepcopy(model).eval()
ended.set()
evaluation.join()

show(model.parameters())
