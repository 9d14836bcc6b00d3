"""Train with one operation that is known to race on a GPU: ``racing.py NAME [cpu|cuda]``."""

import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

NAME, DEVICE = sys.argv[1], sys.argv[2]
LARGE = DEVICE != "cpu"
ROWS, WIDTH, TO = (1_000_000, 8, 500) if LARGE else (100_000, 4, 500)
SIDE = 256 if LARGE else 32

torch.manual_seed(0)


def drawn(*shape: int) -> Tensor:
    """Return numbers that are the same in each run, on each device."""
    return torch.randn(*shape).to(DEVICE)


index = torch.randint(0, TO, (ROWS,)).to(DEVICE)
noise = drawn(ROWS, WIDTH)


def ctc(weight: Tensor) -> Tensor:
    """Return the CTC loss of sequences with repeated labels."""
    lengths = torch.full((16,), 50, dtype=torch.long)
    targets = torch.ones(16, 20, dtype=torch.long).to(DEVICE)
    return F.ctc_loss(weight.log_softmax(2), targets, lengths, torch.full((16,), 20, dtype=torch.long))


def attention(weight: Tensor) -> Tensor:
    """Return causal attention, in bfloat16 on a GPU, where its backward pass adds in any order."""
    query, key, value = (weight.bfloat16() if LARGE else weight).unbind(0)
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def sampled(weight: Tensor) -> Tensor:
    """Return an image at positions that lie close together."""
    grid = torch.linspace(-0.1, 0.1, SIDE).to(DEVICE)
    places = torch.stack(torch.meshgrid(grid, grid, indexing="xy"), -1).expand(len(weight), -1, -1, -1)
    return F.grid_sample(weight, places, align_corners=False)


LENGTH = 1_024 if LARGE else 64
IMAGES = (8, 16, SIDE, SIDE)
OPERATIONS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "scatter_add": ((ROWS,), lambda w: w.new_zeros(TO).scatter_add(0, index, w)),
    "index_add": ((ROWS, WIDTH), lambda w: w.new_zeros(TO, WIDTH).index_add(0, index, w)),
    "index_put": ((ROWS, WIDTH), lambda w: w.new_zeros(TO, WIDTH).index_put((index,), w, accumulate=True)),
    "index_backward": ((TO, WIDTH), lambda w: w[index] * noise),
    "embedding": ((TO, WIDTH), lambda w: F.embedding(index, w) * noise),
    "embedding_bag": ((TO, WIDTH), lambda w: F.embedding_bag(index.view(-1, 100), w, mode="max")),
    "convolution": ((64, 16, 5, 5), lambda w: F.conv2d(image, w)),
    "conv_transpose": ((16, 32, 5, 5), lambda w: F.conv_transpose2d(image, w, stride=2)),
    "grid_sample": (IMAGES, sampled),
    "interpolate": (IMAGES, lambda w: F.interpolate(w, scale_factor=2.3, mode="bilinear")),
    "ctc_loss": ((50, 16, 20), ctc),
    "attention": ((3, 4, 8, LENGTH, 64), attention),
    "cumsum": ((ROWS,), lambda w: w.cumsum(0)),
}
"""The shape of the weights, and what is done with them."""

image = drawn(*IMAGES)


def main() -> None:
    """Train for some steps, and print the last loss."""
    shape, operation = OPERATIONS[NAME]
    weight = torch.nn.Parameter(drawn(*shape))
    target = drawn(1)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    loss = torch.zeros(())
    for _ in range(5):
        loss = (operation(weight).float() - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
