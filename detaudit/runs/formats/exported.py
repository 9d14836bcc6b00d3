"""Read what torch.export.save writes (``.pt2``): a zip of raw weights, constants, and programs in JSON.

The layout is in torch/export/pt2_archive/constants.py. Of the programs, the metadata of nodes is left out: it has the
lines of the source and the paths of modules.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from detaudit.runs.formats import Part, extents, leaves, opaque, unique, unzipped, zip_part

MOST_JSON = 256 * 2**20
_CONFIG = "_config.json"
_DTYPES = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 6: "f2", 7: "f4", 8: "f8", 12: "b1", 13: "bf16"}
"""ScalarType of torch/_export/serde/schema.py."""


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    with unzipped(path) as archive:
        mark = next(one for one in archive.namelist() if one.endswith("/archive_format"))
        root = mark.removesuffix("archive_format")
        weights: dict[str, tuple[str, str, tuple[int, ...]]] = {}
        for member in archive.infolist():
            if member.filename.endswith(_CONFIG) and member.filename.startswith(f"{root}data/"):
                weights |= _described(member.filename.rpartition("/")[0], _json(archive, member))
        for member in sorted(archive.infolist(), key=lambda one: one.filename):
            name = member.filename.removeprefix(root)
            if member.filename in weights:
                label, dtype, shape = weights[member.filename]
                part = zip_part(archive, member, f"{label} ({name})", dtype)
                yield Part(part.name, part.pieces, dtype, shape)
            elif name.startswith("models/") and name.endswith(".json"):
                yield opaque(name, json.dumps(_without(_json(archive, member), 0), sort_keys=True).encode())
            elif name.endswith(".json"):
                yield from leaves(name, _json(archive, member))
            elif name != ".data/serialization_id":
                yield zip_part(archive, member, name)


def _json(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    if member.file_size > MOST_JSON:
        raise ValueError("its program is too large")
    return json.loads(archive.read(member))


def _described(folder: str, config: Any) -> dict[str, tuple[str, str, tuple[int, ...]]]:
    """Return the tensors that a configuration describes, by their files: names, types and shapes."""
    tensors = {}
    for label, one in config.get("config", {}).items():
        meta = one.get("tensor_meta") or {}
        sizes = extents(size.get("as_int", 0) for size in meta.get("sizes", ()))
        dtype = _DTYPES.get(meta.get("dtype", 0), "")
        tensors[f"{folder}/{one['path_name']}"] = label, f"<{dtype}" if dtype else "", sizes
    return tensors


def _without(value: Any, depth: int) -> Any:
    if depth > 200:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict):
        return {key: _without(one, depth + 1) for key, one in value.items() if key != "metadata"}
    return [_without(one, depth + 1) for one in value] if isinstance(value, list) else value
