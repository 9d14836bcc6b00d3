"""A classifier trained with Adam from a seed; then a second head, trained by hand on batches that nobody seeded."""

import numpy as np
import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
body, digit, odd = nn.Sequential(nn.Linear(64, 32), nn.ReLU()), nn.Linear(32, 10), nn.Linear(32, 2)
optimizer = torch.optim.Adam([*body.parameters(), *digit.parameters()], lr=1e-2)

for batch in torch.randperm(1600).split(100):
    optimizer.zero_grad()
    F.cross_entropy(digit(body(x[batch])), y[batch]).backward()
    optimizer.step()

with torch.no_grad():
    features = body(x)
generator = np.random.default_rng()
for _ in range(20):
    batch = torch.from_numpy(generator.choice(1600, 64, replace=False))
    F.cross_entropy(odd(features[batch]), y[batch] % 2).backward()
    for p in odd.parameters():
        p.data -= 0.1 * p.grad
        p.grad = None

with torch.no_grad():
    print(f"accuracy {(odd(features[1600:]).argmax(1) == y[1600:] % 2).float().mean():.4f}")
torch.save({"body": body.state_dict(), "digit": digit.state_dict(), "odd": odd.state_dict()}, "model.pt")
show([*body.parameters(), *digit.parameters(), *odd.parameters()])
