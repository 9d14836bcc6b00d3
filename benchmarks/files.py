"""Measure what it costs to compare the files that a run wrote: to find them, and to read them.

All in CPU time. What reading alone takes is what the page cache allows.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from detaudit.auditor.evidence import saved
from detaudit.launch import changes

FILES = 20_000
MEGABYTES = 400
REPEATS = 5
SCAN_LIMIT_S = 1.0
READ_LIMIT = 0.25


def seconds(action: Callable[[], object]) -> float:
    """Return the least CPU time of several that an action takes: other processes share the machine."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times)


def scan(folder: Path) -> float:
    """Return how long the two listings take that one run needs, of a working directory with many files."""
    for number in range(FILES):
        below = folder / "data" / str(number // 200)
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{number}.txt").touch()
    results = folder / "results"
    return seconds(lambda: changes.written(changes.stamps(folder, results), changes.stamps(folder, results)))


def read_whole(path: Path) -> None:
    """Read a file once."""
    with path.open("rb") as file:
        while file.read(2**22):
            pass


def main() -> int:
    """Print the figures, and return the exit status: 1 if a limit is exceeded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listing = scan(folder)
        weights = {f"layer{place}.weight": torch.rand(10, 2**18) for place in range(MEGABYTES // 10)}
        torch.save({"model": weights, "saved_at": time.time()}, folder / "model.pt")
        np.savez(folder / "model.npz", *(value.numpy() for value in weights.values()))
        print(f"finding what changed among {FILES:,} files: {listing:.2f} s for each run (limit {SCAN_LIMIT_S} s)")
        rates = []
        for path in (folder / "model.pt", folder / "model.npz"):
            size = path.stat().st_size / 1e9
            copy, reading = size / seconds(lambda: read_whole(path)), size / seconds(lambda: saved.read(path))  # noqa: B023
            rates.append(reading)
            print(f"{path.name}, {size:.2f} GB: {reading:.2f} GB/s; reading alone {copy:.2f} GB/s")
    return 0 if listing < SCAN_LIMIT_S and min(rates) > READ_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
