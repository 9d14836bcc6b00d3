"""How long it takes to find how far two tensors are apart, with NumPy against without it, in CPU time."""

import time
from collections.abc import Iterator
from unittest import mock

import numpy as np

from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios
from detaudit.judge import tensors

ELEMENTS = 1_000_000
TURNS = 5
GOAL = Goal(0.4)


def seconds(a: bytes, b: bytes) -> float:
    """Return the CPU time of one comparison."""
    started = time.process_time()
    tensors.difference("float32", (len(a) // 4,), a, b)
    return time.process_time() - started


def without_numpy(a: bytes, b: bytes) -> float:
    """Return the CPU time of one comparison on a machine without NumPy."""
    with mock.patch.object(tensors, "_numpy", return_value=None):
        return seconds(a, b)


def measure(scale: Scale) -> Iterator[Row]:
    """Yield the row of elements that all differ."""
    elements = scale.size(ELEMENTS, 10_000)
    ours = np.random.default_rng(0).normal(size=elements).astype("float32")
    a, b = ours.tobytes(), np.nextafter(ours, np.float32(9)).tobytes()
    seconds(a, b)  # imports NumPy
    turns = in_turn(scale.turns(TURNS), {"with": lambda: seconds(a, b), "without": lambda: without_numpy(a, b)})
    yield Row(
        what=f"the distance of {elements:,} elements that all differ, with NumPy",
        over="without NumPy",
        ratios=ratios(turns, "with", "without"),
        also=(Figure(median(turn["with"] for turn in turns), "s", GOAL),),
    )
