"""tqdm in tqdm, of which only the outer one stays."""

import net
import torch
from tqdm import tqdm, trange

model = net.make_model()
x, y = net.make_data()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in trange(4, desc="epochs"):
    for start in tqdm(range(0, 96, 8), desc=f"epoch {epoch}", leave=False):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[start : start + 8]), y[start : start + 8]).backward()
        optimizer.step()
