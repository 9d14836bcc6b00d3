"""Compare the digest of 400 MB with a copy of them, in turn, on one core and on a GPU if there is one."""

import time
from collections.abc import Callable

import numpy as np
import torch

from detaudit.recorder.training.digest import NumpyDigest, TorchDigest

BYTES = 400 * 10**6
TURNS = 7


def quickest(*functions: Callable[[], object]) -> list[float]:
    """Call the functions in turn, and return the shortest time of each in seconds."""
    took: list[list[float]] = [[] for _ in functions]
    for _ in range(TURNS):
        for function, times in zip(functions, took, strict=True):
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
    return [min(times) for times in took]


def report(where: str, copy: float, digest: float) -> None:
    """Print the two speeds, and their ratio."""
    speeds = f"copy {BYTES / copy / 1e9:.1f} GB/s, digest {BYTES / digest / 1e9:.1f} GB/s"
    print(f"{where}: {speeds}, {copy / digest:.2f}x the speed of the copy")


def main() -> None:
    """Measure NumPy and torch on the CPU, and torch on a GPU."""
    torch.set_num_threads(1)
    array = np.random.default_rng(0).normal(size=BYTES // 8)
    other = np.empty_like(array)
    of_numpy, of_torch, tensor = NumpyDigest(np), TorchDigest(torch), torch.from_numpy(array)
    copy, numpy_s, torch_s = quickest(
        lambda: np.copyto(other, array), lambda: of_numpy.words(array), lambda: of_torch.words([tensor])
    )
    report("NumPy", copy, numpy_s)
    report("torch on the CPU", copy, torch_s)
    if torch.cuda.is_available():
        there = tensor.cuda()
        target = torch.empty_like(there)

        def copied() -> None:
            target.copy_(there)
            torch.cuda.synchronize()

        report(torch.cuda.get_device_name(), *quickest(copied, lambda: of_torch.words([there])))


if __name__ == "__main__":
    main()
