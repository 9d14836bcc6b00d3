"""The last two checkpoints are kept: the newest is always number 0."""

import os
import time

import net
import torch

model = net.make_model()
x, y = net.make_data()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(4):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    if os.path.exists("checkpoint_0.pt") and epoch:
        os.replace("checkpoint_0.pt", "checkpoint_1.pt")
    torch.save({"model": model.state_dict(), "epoch": epoch, "saved_at": time.time()}, "checkpoint_0.pt")
