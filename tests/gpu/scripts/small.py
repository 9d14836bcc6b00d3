"""Train a small network in one of the ways in which a GPU is used: ``small.py WAY [cpu|cuda]``.

``graph`` captures a step in a CUDA graph, ``compiled`` uses torch.compile, ``amp`` float16 with a scaler, ``streams`` a
second stream, ``autotuned`` cuDNN's benchmark mode. ``plain`` has a convolution, attention and a matrix product, and
none of these.
"""

import contextlib
import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WAY, DEVICE = sys.argv[1], sys.argv[2]
GPU = DEVICE != "cpu"
STEPS = 8

torch.manual_seed(0)


class Network(nn.Module):
    """A convolution, attention over what it returns, and a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 32, 3, padding=1)
        self.head = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of images, of shape (N, 3, 16, 16)."""
        seen = F.relu(self.convolution(images)).flatten(2).transpose(1, 2)
        return self.head(F.scaled_dot_product_attention(seen, seen, seen).mean(1))


network = Network().to(DEVICE)
images, labels = torch.randn(32, 3, 16, 16).to(DEVICE), torch.randint(0, 10, (32,)).to(DEVICE)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)


def usual(forward: Callable[[Tensor], Tensor]) -> float:
    """Train step by step."""
    loss = torch.zeros(())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(images), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


def captured() -> float:
    """Capture the forward and the backward pass in a graph, as torch's documentation does, and replay it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(network(images), labels).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = F.cross_entropy(network(images), labels)
        loss.backward()
    for _ in range(STEPS):
        graph.replay()
        optimizer.step()
    return loss.item()


def scaled() -> float:
    """Train in float16 with a scaler of gradients, in bfloat16 without a GPU."""
    scaler = torch.amp.GradScaler(DEVICE, enabled=GPU)
    loss = torch.zeros(())
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.float16 if GPU else torch.bfloat16):
            loss = F.cross_entropy(network(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return loss.item()


def beside() -> float:
    """Copy each batch to the device in a second stream while the step before it is under way."""
    stream = torch.cuda.Stream() if GPU else None
    host = [torch.randn(32, 3, 16, 16).pin_memory() if GPU else torch.randn(32, 3, 16, 16) for _ in range(STEPS)]
    loss = torch.zeros(())
    for batch in host:
        with torch.cuda.stream(stream) if stream else contextlib.nullcontext():
            here = batch.to(DEVICE, non_blocking=True)
        if stream:
            torch.cuda.current_stream().wait_stream(stream)
            here.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad()
        loss = F.cross_entropy(network(here), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    """Train, and print the last loss."""
    if WAY == "autotuned":
        torch.backends.cudnn.benchmark = True
    if WAY == "graph" and GPU:
        print(captured())
    elif WAY == "amp":
        print(scaled())
    elif WAY == "streams":
        print(beside())
    elif WAY == "compiled":
        print(usual(torch.compile(network, mode="reduce-overhead" if GPU else "default")))
    else:
        print(usual(network))


if __name__ == "__main__":
    main()
