"""tqdm with a description and the loss behind it."""

import net
import torch
from tqdm.auto import tqdm

model = net.make_model()
x, y = net.make_data()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with tqdm(total=40, unit="batch", dynamic_ncols=True) as bar:
    for step in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        bar.set_description(f"step {step}")
        bar.set_postfix(loss=loss.item(), lr=0.1)
        bar.update()
