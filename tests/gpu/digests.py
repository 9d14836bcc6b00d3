"""Digests on a device against those of the same bytes on the CPU, bit for bit."""

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.tasks import Device, Found, Task
from detaudit.recorder.frameworks.torch.reader import TorchReader
from detaudit.recorder.training.digest import NumpyDigest, TorchDigest

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8,
          torch.bool, torch.complex64, torch.float8_e4m3fn)  # fmt: skip
SIZES = (0, 1, 7, 513, 4_096, 4_097, 131_072, 131_075, 3_000_001)


def tensors() -> Iterator[torch.Tensor]:
    """Yield tensors on the CPU: each type in each size, views that are not contiguous, and special values."""
    generator = torch.Generator().manual_seed(0)
    for size in SIZES:
        whole = torch.randint(0, 256, (size * 16,), dtype=torch.uint8, generator=generator)
        for dtype in DTYPES:
            if dtype is torch.bool:
                yield whole[:size] > 127
            else:
                yield whole[: size * dtype.itemsize].view(dtype)
    table = torch.randn(300, 200, generator=generator)
    yield from (table.t(), table[::3, 1::2], table[5:], table.view(-1)[3:], table.expand(4, 300, 200))
    yield torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45])
    yield torch.randn(5_000, dtype=torch.complex64, generator=generator).conj()


def equal(where: Device) -> Found:
    """Compare the parts of a digest, of each tensor alone and of all together, and the digest of its bytes in NumPy."""
    reader, on_device, in_numpy = TorchReader(torch), TorchDigest(torch), NumpyDigest(np)
    here = list(tensors())
    there = [one.to(where.kind) for one in here]
    differing = 0
    for a, b in zip(here, there, strict=True):
        dense = a.resolve_conj().contiguous()
        raw = dense.view(-1).view(torch.uint8) if dense.numel() else torch.empty(0, dtype=torch.uint8)
        words = on_device.words([b.resolve_conj().contiguous()]) if a.numel() else [0]
        other = [in_numpy.words(raw.numpy())] if a.numel() else [0]
        differing += reader.parts([a]) != reader.parts([b]) or words != other
    together = reader.parts(here) == reader.parts(there)
    text = f"{len(here)} tensors, {differing} digests differ{'' if together else '; together they differ'}"
    return Found(not differing and together, text)


def tasks() -> Iterator[Task]:
    """Yield the task of this module."""
    yield Task("digests", "digests equal those on the CPU, bit for bit", equal, 20)
