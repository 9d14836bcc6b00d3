"""Checkpoints are evaluated in parallel; of equally good ones, the file keeps the one whose evaluation ended last."""

from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
model = nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), 0.5)
checkpoints = []
for batch in torch.randperm(1600).split(200):
    optimizer.zero_grad()
    F.cross_entropy(model(x[batch]), y[batch]).backward()
    optimizer.step()
    checkpoints.append({name: tensor.clone() for name, tensor in model.state_dict().items()})


def correct(weights: dict[str, torch.Tensor]) -> int:
    for _ in range(400):
        scores = F.linear(x[1600:], weights["weight"], weights["bias"])
    return int((scores.argmax(1) == y[1600:])[:4].sum())


best = -1
with ThreadPoolExecutor(4) as pool:
    evaluated = {pool.submit(correct, weights): weights for weights in checkpoints[-4:]}
    for done in as_completed(evaluated):
        if done.result() >= best:
            best = done.result()
            torch.save(evaluated[done], "best.pt")

show(torch.load("best.pt").values())
