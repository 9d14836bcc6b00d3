"""Train a small network on digits with DistributedDataParallel, and plant a fault in one rank.

PLANT is ``STAGE:RANK:STEP``: this stage of this rank is then the first thing that differs from a run without a fault.
The ranks come from the launcher: torchrun, accelerate or mpirun.
"""

import os
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "6"))
SAMPLES = 32


def meet() -> int:
    """Join the other ranks, and return the number of this one."""
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        rank, world = (int(os.environ[f"OMPI_COMM_WORLD_{name}"]) for name in ("RANK", "SIZE"))
        dist.init_process_group("gloo", init_method=f"file://{os.environ['MEETING']}", rank=rank, world_size=world)
    return dist.get_rank()


class Plant:
    """The fault of this run."""

    def __init__(self, rank: int) -> None:
        self._stage, where, when = os.environ.get("PLANT", "none:0:0").strip().split(":")
        self._here, self._when = rank == int(where), int(when)

    def __call__(self, stage: str, step: int | None = None) -> bool:
        return self._here and stage == self._stage and step in (None, self._when)


def one_step(plant: Plant, step: int, model: Any, optimizer: Any, x: Any, y: Any) -> None:
    network = model.module
    if plant("rng", step):
        torch.rand(1)
    if plant("batch", step):
        x[0, 20] += 0.5
    scores = model(x)
    if plant("backward", step):
        scores.register_hook(lambda gradient: gradient * 1.01)
    loss = nn.functional.cross_entropy(scores, y)
    if plant("forward", step):
        loss = loss * 1.01
    optimizer.zero_grad()
    loss.backward()
    if plant("reduce", step):
        network[0].weight.grad[0] += 0.01
    if plant("update", step):
        optimizer.param_groups[0]["lr"] *= 1.01
    if plant("state", step):
        network[1].running_mean[0] += 0.01
    optimizer.step()


def main() -> None:
    rank = meet()
    plant = Plant(rank)
    digits = np.load(os.environ["DIGITS"])
    images, labels = torch.from_numpy(digits["images"]), torch.from_numpy(digits["labels"])
    torch.manual_seed(rank)
    network = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    model = DistributedDataParallel(network)
    if plant("init"):
        network[0].weight.data[0, 0] += 0.01
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, STEPS + 1):
        first = (step * dist.get_world_size() + rank) * SAMPLES % 1500
        batch = slice(first, first + SAMPLES)
        one_step(plant, step, model, optimizer, images[batch].clone(), labels[batch])
    if plant("steps"):
        optimizer.step()
    if plant("end"):
        network[0].weight.data[0, 0] += 0.01
    network.eval()
    with torch.no_grad():
        network(images[1500:] + (0.5 if plant("output") else 0.0))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
