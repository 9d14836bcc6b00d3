"""Read Keras models: a zip of weights in HDF5 and a configuration; metadata, which has the date, is left out."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from detaudit.runs.formats import Part, hdf5, leaves, unique, unzipped, zip_part

MOST_CONFIG = 64 * 2**20
_DATED = "metadata.json"


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    with unzipped(path) as archive:
        for member in sorted(archive.infolist(), key=lambda member: member.filename):
            name = member.filename
            if name.endswith(".h5"):
                with tempfile.NamedTemporaryFile(
                    prefix="detaudit-"
                ) as file:  # HDF5 needs random access, which a member of a zip lacks
                    with archive.open(member) as packed:
                        shutil.copyfileobj(packed, file)
                    file.flush()
                    for part in hdf5.parts(Path(file.name)):
                        yield replace(part, name=f"{name}: {part.name}")
            elif name == "config.json" and member.file_size <= MOST_CONFIG:
                yield from leaves(name, _without_addresses(archive.read(member)))
            elif name != _DATED:
                yield zip_part(archive, member, name)


def _without_addresses(config: bytes) -> Any:
    """Return a configuration in which shared objects are numbered, because Keras names them by their address."""
    seen: dict[int, int] = {}

    def numbered(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {
            key: seen.setdefault(value, len(seen)) if key == "shared_object_id" and isinstance(value, int) else value
            for key, value in pairs
        }

    return json.loads(config, object_pairs_hook=numbered)
