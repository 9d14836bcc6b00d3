"""Measure how long it takes to find how far two tensors are apart, with NumPy and without it.

In CPU time, in turn, so that a drift in the speed of the machine affects both.
"""

import statistics
import sys
import time
from unittest import mock

import numpy as np

from detaudit.auditor.judge import array_distances, tensors

ELEMENTS = 1_000_000
PAIRS = 5
LIMIT_S = 0.4


def seconds(a: bytes, b: bytes) -> float:
    """Return the CPU time of one comparison."""
    started = time.process_time()
    tensors.difference("float32", (ELEMENTS,), a, b)
    return time.process_time() - started


def main() -> int:
    """Print the figures, and return the exit status: 1 if the limit is exceeded."""
    ours = np.random.default_rng(0).normal(size=ELEMENTS).astype("float32")
    a, b = ours.tobytes(), np.nextafter(ours, np.float32(9)).tobytes()
    seconds(a, b)  # imports NumPy
    fast, slow = [], []
    for _ in range(PAIRS):
        fast.append(seconds(a, b))
        with mock.patch.object(array_distances, "_numpy", return_value=None):
            slow.append(seconds(a, b))
    ratio = statistics.median(y / x for x, y in zip(fast, slow, strict=True))
    median = statistics.median(fast)
    print(f"distances of {ELEMENTS:,} elements that all differ: {median:.2f} s (limit {LIMIT_S} s)", end=", ")
    print(f"{statistics.median(slow):.1f} s without NumPy, {ratio:.0f}x")
    return 0 if median < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
