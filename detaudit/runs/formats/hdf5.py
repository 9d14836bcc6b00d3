"""Read the datasets and attributes of HDF5 files, which needs h5py; links to other files are never followed."""

from collections.abc import Iterator
from pathlib import Path

from detaudit.runs.formats import Part, apart


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return apart.by_library("hdf5", path)
