"""Read what skops saves of an estimator: a zip of arrays, and a schema that says where in the estimator each belongs.

Each node of ``schema.json`` has a ``__loader__`` and an ``__id__``, its address; that of an array also the name of its
``file`` in the zip: skops/io/_general.py and skops/io/_numpy.py of https://github.com/skops-dev/skops.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from detaudit.runs.formats import MOST_DEPTH, Part, archives, leaves, text, unique, unzipped

_SCHEMA = "schema.json"
_MOST_SCHEMA = 64 * 2**20
_GENERATORS = ("RandomStateNode", "RandomGeneratorNode")
_OF_THE_NODE = frozenset(("__class__", "__module__", "__loader__", "__id__", "file", "is_json"))


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts. What a node holds has the name of its place in the estimator."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    with unzipped(path) as archive:
        if archive.getinfo(_SCHEMA).file_size > _MOST_SCHEMA:
            raise ValueError("its schema is too large")
        schema = _Schema()
        yield from schema.node("", json.loads(archive.read(_SCHEMA)))
    for part in archives.members(path, {**schema.files, _SCHEMA: None}):
        yield replace(part, generator=part.generator or part.name in schema.generators)


@dataclass
class _Schema:
    """What the nodes that were read say: the place of each file, and the places that belong to random generators."""

    files: dict[str, str | None] = field(default_factory=dict)
    generators: set[str] = field(default_factory=set)

    def node(self, name: str, node: Any, generator: bool = False, depth: int = 0) -> Iterator[Part]:
        """Yield what a node says itself, and what is below it."""
        if depth > MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(node, dict) and "__loader__" in node:
            generator = generator or node["__loader__"] in _GENERATORS
            if node.get("is_json"):
                node = json.loads(node["content"])
            else:
                yield text(f"{name}.class".lstrip("."), f"{node['__module__']}.{node['__class__']}")
                if "file" in node:
                    place = self.files.setdefault(node["file"], name)
                    self.generators |= {str(place)} if generator else set()
                node = {key: value for key, value in node.items() if key not in _OF_THE_NODE}
        if isinstance(node, dict | list):
            for key, value in node.items() if isinstance(node, dict) else enumerate(node):
                below = name if key == "content" else f"{name}.{key}".lstrip(".")
                yield from self.node(below, value, generator, depth + 1)
        else:
            for part in leaves(name, node):
                yield replace(part, generator=generator)
