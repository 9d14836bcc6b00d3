"""Flip the bit of a plant, and note what a training computes: the digest of each value, without detaudit.

Where a report must name a difference follows from these digests alone, of the bytes as they are in memory.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.planted.plants import Plant


def memory(tensor: Any) -> Any:
    """Return the bytes of a tensor of torch or an array of NumPy, to be read and written in place."""
    if hasattr(tensor, "detach"):
        import torch

        flat = tensor.detach().view(-1) if tensor.dim() else tensor.detach().reshape(1)
        return flat.view(torch.uint8).numpy()
    return tensor.reshape(-1).view("uint8")


class Values:
    """What one process of a training computes, and the one bit that it flips meanwhile."""

    def __init__(self, folder: Path, plant: Plant | None, rank: int = 0) -> None:
        self._folder, self._rank = folder, rank
        self._plant = plant if plant is not None and plant.rank == rank else None
        self._noted: dict[str, str] = {}

    def strike(self, place: str, step: int, tensors: Sequence[Any]) -> None:
        """Flip the bit, if it is to be flipped here."""
        plant = self._plant
        if plant is None or plant.place != place or plant.step != step:
            return
        found = memory(tensors[plant.tensor % len(tensors)])
        width = tensors[plant.tensor % len(tensors)].dtype.itemsize
        element, bit = plant.element % (len(found) // width), plant.bit % (8 * width)
        found[element * width + bit // 8] ^= 1 << bit % 8

    def note(self, step: int, stage: str, tensors: Sequence[Any], file: str = "") -> None:
        """Note the bytes of tensors."""
        digest = hashlib.sha256()
        for tensor in tensors:
            digest.update(memory(tensor).tobytes())
        self._noted[f"{self._rank} {step} {stage}" + (f" {file}" if file else "")] = digest.hexdigest()

    def write(self) -> None:
        """Write all that was noted, into a file for each process."""
        (self._folder / f"noted-{self._rank}.json").write_text(json.dumps(self._noted))


def read(folder: Path) -> dict[str, str]:
    """Return what all processes of a run noted."""
    return {
        key: value
        for path in sorted(folder.glob("noted-*.json"))
        for key, value in json.loads(path.read_text()).items()
    }
