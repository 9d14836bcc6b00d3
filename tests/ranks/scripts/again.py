"""train.py for an elastic torchrun: the first time, each rank trains a step alone, and then the last one fails."""

import os

import torch
import train

if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    w = torch.rand(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.sum().backward()
    optimizer.step()
    if os.environ["RANK"] == "1":
        os._exit(3)
    torch.futures.Future[None]().wait()  # until it is ended
train.main()
