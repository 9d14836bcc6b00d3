"""Two processes update one model in shared memory without a lock (Hogwild)."""

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F
from final import show
from torch import nn


def train(rank: int, model: nn.Module) -> None:
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    for _ in range(200):
        x = torch.randn(64, 16)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
                p.grad = None


if __name__ == "__main__":
    torch.manual_seed(0)
    shared = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    shared.share_memory()
    mp.set_start_method("fork")
    workers = [mp.Process(target=train, args=(rank, shared)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    show(shared.parameters())
