"""Three processes train one model with DistributedDataParallel over gloo."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from final import show
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, meeting: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}/gloo", rank=rank, world_size=3)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)))
    generator = torch.Generator().manual_seed(rank)
    for _ in range(5):
        x = torch.randn(128, 64, generator=generator)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
                p.grad = None
    if rank == 0:
        show(model.parameters())
    os._exit(0)  # taking the group apart can deadlock: it waits, under the interpreter lock, for a thread that wants it


if __name__ == "__main__":
    mp.set_start_method("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [mp.Process(target=train, args=(rank, folder)) for rank in range(3)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
