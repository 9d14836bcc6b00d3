"""Read npz: a zip of NumPy arrays; the time stamps in the zip are left out."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from detaudit.runs.formats import Part, npy, unique, unzipped, zip_part


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    with unzipped(path) as archive:
        for member in sorted(archive.infolist(), key=lambda member: member.filename):
            if member.filename.endswith(".npy"):
                with archive.open(member) as file:
                    yield from npy.arrays(file, member.filename.removesuffix(".npy"))
            else:
                yield zip_part(archive, member, member.filename)


def written(arrays: Mapping[str, bytes]) -> bytes:
    """Return a file with these arrays, each encoded by npy.written."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in arrays.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()
