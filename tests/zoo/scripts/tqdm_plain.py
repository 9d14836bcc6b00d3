"""tqdm around a loop."""

import net
import torch
from tqdm import tqdm

model = net.make_model()
x, y = net.make_data()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in tqdm(range(60)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(f"loss {net.score(model):.4f}")
