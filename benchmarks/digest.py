"""The speed of the digest of 400 MB against that of a copy of them, on one core, and on a GPU if there is one."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from benchmarks.rows import Figure, Goal, Row, Scale, Turns, in_turn, median, ratios
from detaudit.recorder.training.digest import NumpyDigest, TorchDigest

BYTES = 400 * 10**6
TURNS = 15
GOAL = Goal(0.33, at_least=True)


def timed(action: Callable[[], object]) -> Callable[[], float]:
    """Return a function that measures the seconds of an action."""

    def seconds() -> float:
        started = time.perf_counter()
        action()
        return time.perf_counter() - started

    return seconds


def row(what: str, over: str, turns: Turns, size: int, goal: Goal | None = None, copy: str = "copy") -> Row:
    """Return the ratio of the two speeds, which is that of the times turned around."""
    digest_s = median(turn[what] for turn in turns)
    return Row(
        what=f"speed of the digest, {what}",
        over=over,
        ratios=ratios(turns, copy, what),
        goal=goal,
        also=(Figure(size / digest_s / 1e9, "GB/s"),),
    )


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for NumPy, for torch on the CPU, and for torch on a GPU."""
    torch.set_num_threads(1)
    array = np.random.default_rng(0).normal(size=scale.size(BYTES, 10**6) // 8)
    other, tensor = np.empty_like(array), torch.from_numpy(array)
    of_numpy, of_torch = NumpyDigest(np), TorchDigest(torch)
    actions: dict[str, Callable[[], object]] = {
        "copy": lambda: np.copyto(other, array),
        "NumPy": lambda: of_numpy.words(array),
        "torch on the CPU": lambda: of_torch.words([tensor]),
    }
    measured = {name: timed(action) for name, action in actions.items()}
    in_turn(1, measured)
    turns = in_turn(scale.turns(TURNS), measured)
    yield row("NumPy", "the speed of numpy.copyto", turns, array.nbytes, GOAL)
    yield row("torch on the CPU", "the speed of numpy.copyto", turns, array.nbytes, GOAL)
    if torch.cuda.is_available():
        yield on_gpu(scale, tensor.cuda(), of_torch)


def on_gpu(scale: Scale, there: torch.Tensor, digest: TorchDigest) -> Row:
    """Return the row of a GPU."""
    target, name = torch.empty_like(there), torch.cuda.get_device_name()

    def copy() -> None:
        target.copy_(there)
        torch.cuda.synchronize()

    measured = {"copy": timed(copy), name: timed(lambda: digest.words([there]))}
    in_turn(1, measured)
    turns = in_turn(scale.turns(TURNS), measured)
    return row(name, "the speed of a copy on the device", turns, there.nbytes)
