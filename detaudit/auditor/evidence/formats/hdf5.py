"""Read the datasets of HDF5 files, which needs h5py; links to other files are never followed."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from detaudit.auditor.evidence.formats import PIECE, Part, apart

MOST_CHUNK = 2**30
"""Bytes: h5py unpacks a chunk as a whole."""

MOST_TEXTS = 100_000


def parts(path: Path) -> Iterator[Part]:
    """See Reader.parts."""
    with path.open("rb") as file:
        yield from datasets(file, path.stat().st_size)


def datasets(file: IO[bytes], size: int, prefix: str = "") -> Iterator[Part]:
    """Yield the datasets of an HDF5 file of ``size`` bytes, with ``prefix`` before their paths."""
    import h5py  # noqa: F401 - once, and not in each fork

    return apart.parts(lambda: _datasets(file, size, prefix))


def _datasets(file: IO[bytes], size: int, prefix: str) -> Iterator[Part]:
    import h5py

    with h5py.File(file, "r") as root:
        found: dict[str, Any] = {}

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                found[name] = item

        root.visititems(visit)  # follows no soft or external links
        for name, dataset in sorted(found.items()):
            _check(dataset, size)
            read = _texts(dataset) if dataset.dtype.hasobject else _slabs(dataset, ())
            yield Part(prefix + name, read, dataset.dtype.str, dataset.shape or ())


def _check(dataset: Any, size: int) -> None:
    import h5py

    if dataset.is_virtual or dataset.external:
        raise ValueError("it keeps data in other files")
    if dataset.chunks and math.prod(dataset.chunks) * dataset.dtype.itemsize > MOST_CHUNK:
        raise ValueError("its chunks are too large")
    if dataset.nbytes > MOST_CHUNK and dataset.nbytes > 2000 * size:  # more than compression can do
        raise ValueError("it declares far more data than it holds")
    if dataset.dtype.hasobject and (h5py.check_string_dtype(dataset.dtype) is None or dataset.size > MOST_TEXTS):
        raise ValueError(f"{dataset.name} holds neither numbers nor a few texts")


def _slabs(dataset: Any, at: tuple[int, ...]) -> Iterator[bytes]:
    """Yield the elements below the index ``at`` in C order, up to PIECE bytes at a time."""
    if dataset.shape is None:  # an empty dataspace
        return
    rest = dataset.shape[len(at) :]
    if not rest:
        yield dataset[at].tobytes()
        return
    row = math.prod(rest[1:]) * dataset.dtype.itemsize
    if row > PIECE:
        for index in range(rest[0]):
            yield from _slabs(dataset, (*at, index))
        return
    step = PIECE // max(row, 1)
    for start in range(0, rest[0] if row else 0, step):
        rows = *at, slice(start, start + step)
        yield dataset[rows].tobytes()


def _texts(dataset: Any) -> Iterator[bytes]:
    for text in dataset[()].reshape(-1) if dataset.shape else [dataset[()]]:
        yield len(text).to_bytes(8, "little") + text
