"""Repeat the gradients that TensorFlow's first tests of determinism compared, and count the elements that differ.

``python -m tests.history.gradients --framework tensorflow`` (or ``torch``, with ``--device cuda`` on a GPU) prints a
line for each operation: the elements of the gradient that differ from the first time, out of how many, and the largest
absolute and relative difference, as ``assertAllEqual`` prints them. The logits are 1024 x 1000.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

BATCH, CLASSES = 1024, 1000
IMAGES = (16, 32, 32, 16)
"""Images of bias_add and max-pool, with channels last."""

Gradient = Callable[[], Any]


class Found(NamedTuple):
    """The largest differences between the first gradient and any later one."""

    operation: str
    mismatched: int
    total: int
    max_abs: float
    max_rel: float


def compared(operation: str, gradient: Gradient, repeats: int) -> Found:
    """Return how far later gradients are from the first; relative to the later one, as in assertAllEqual."""
    first = np.asarray(gradient())
    worst = Found(operation, 0, first.size, 0.0, 0.0)
    for _ in range(repeats - 1):
        later = np.asarray(gradient())
        differing = first.view("u4") != later.view("u4")
        apart = np.abs(first - later)[differing]
        size = np.abs(later[differing])
        relative = np.divide(apart, size, out=np.zeros_like(apart), where=size > 0)
        worst = Found(
            operation,
            max(worst.mismatched, int(differing.sum())),
            first.size,
            max(worst.max_abs, *map(float, apart), 0.0),
            max(worst.max_rel, *map(float, relative), 0.0),
        )
    return worst


def inputs() -> dict[str, Any]:
    """Return the inputs, the same in every process."""
    random = np.random.default_rng(123)
    dense = random.random((BATCH, CLASSES)).astype("f4")
    return {
        "logits": random.standard_normal((BATCH, CLASSES)).astype("f4"),
        "dense": dense / dense.sum(1, keepdims=True),
        "sparse": random.integers(0, CLASSES, BATCH),
        "upstream": random.standard_normal(BATCH).astype("f4"),
        "images": random.standard_normal(IMAGES).astype("f4"),
        "bias": random.standard_normal(IMAGES[-1]).astype("f4"),
    }


def of_tensorflow(device: str) -> Iterator[tuple[str, Gradient]]:
    """Yield the gradients in TensorFlow."""
    tf = importlib.import_module("tensorflow")
    place = "/GPU:0" if device != "cpu" else "/CPU:0"
    given = inputs()

    def gradient(function: Callable[[Any], Any], name: str, upstream: Any = None) -> Gradient:
        def compute() -> Any:
            with tf.device(place), tf.GradientTape() as tape:
                value = tf.constant(given[name])
                tape.watch(value)
                result = function(value)
            return tape.gradient(result, value, upstream).numpy()

        return compute

    nn, upstream = tf.nn, tf.constant(given["upstream"])
    dense, sparse = given["dense"], given["sparse"]
    yield "dense", gradient(lambda x: nn.softmax_cross_entropy_with_logits(dense, x), "logits", upstream)
    yield "sparse", gradient(lambda x: nn.sparse_softmax_cross_entropy_with_logits(sparse, x), "logits", upstream)
    yield "bias_add", gradient(lambda b: nn.bias_add(given["images"], b) ** 2, "bias")
    yield "max-pool", gradient(lambda x: nn.max_pool2d(x, 3, 1, "SAME") ** 2, "images")


def of_torch(device: str) -> Iterator[tuple[str, Gradient]]:
    """Yield the same gradients in torch, whose images have channels first."""
    import torch

    functional = torch.nn.functional
    given = {name: torch.from_numpy(value).to(device) for name, value in inputs().items()}
    images = given["images"] = given["images"].permute(0, 3, 1, 2).contiguous()
    upstream = given["upstream"]

    def gradient(function: Callable[[Any], Any], name: str) -> Gradient:
        def compute() -> Any:
            value = given[name].detach().requires_grad_()
            (found,) = torch.autograd.grad(function(value), value)
            return found.cpu().numpy()

        return compute

    def loss(labels: Any) -> Callable[[Any], Any]:
        return lambda x: (functional.cross_entropy(x, labels, reduction="none") * upstream).sum()

    yield "dense", gradient(loss(given["dense"]), "logits")
    yield "sparse", gradient(loss(given["sparse"]), "logits")
    yield "bias_add", gradient(lambda b: ((images + b[:, None, None]) ** 2).sum(), "bias")
    yield "max-pool", gradient(lambda x: (functional.max_pool2d(x, 3, 1, 1) ** 2).sum(), "images")


FRAMEWORKS = {"tensorflow": of_tensorflow, "torch": of_torch}


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for operation, gradient in FRAMEWORKS[options.framework](options.device):
        found = compared(operation, gradient, options.repeats)
        if options.json:
            print(json.dumps(found._asdict()))
        else:
            share = found.mismatched / found.total
            print(
                f"{operation:9} {found.mismatched:,} of {found.total:,} elements differ ({share:.2%}), "
                f"max absolute {found.max_abs:.2g}, max relative {found.max_rel:.2g}"
            )


if __name__ == "__main__":
    main()
