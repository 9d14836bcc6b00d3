"""rich.progress.track around a loop."""

import net
import torch
from rich.progress import track

model = net.make_model()
x, y = net.make_data()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in track(range(40), description="training"):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
