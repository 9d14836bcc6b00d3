"""The page of the JSON schema: a section for each object of a report, with its keys and their types."""

import json
import re
from collections.abc import Mapping
from typing import Any

from detaudit.report.json import FILE
from docs._generate.markdown import code, codes, table

Schema = Mapping[str, Any]


def page() -> str:
    """Return a list of the reports and a section for each object in them, the reports first."""
    schema = json.loads(FILE.read_text())
    objects: Schema = schema["$defs"]
    kinds = {kind: _name(reference) for kind, reference in schema["discriminator"]["mapping"].items()}
    first = list(dict.fromkeys(kinds.values()))
    rows = [[code(kind), _link(name)] for kind, name in kinds.items()]
    names = [*first, *sorted(name for name in objects if name not in first)]
    return "\n\n".join([table(["`kind`", "object"], rows), *(_section(name, objects[name]) for name in names)])


def _section(name: str, found: Schema) -> str:
    parts = [f"## {name}", found["description"]]
    if "enum" in found:
        parts.append(f"One of {codes(map(str, found['enum']))}.")
    rows = [[code(key), _type(value), _default(value)] for key, value in found.get("properties", {}).items()]
    return "\n\n".join([*parts, table(["key", "type", "if it is left out"], rows)] if rows else parts)


def _default(found: Schema) -> str:
    return code(json.dumps(found["default"])) if "default" in found else ""


def _type(found: Schema) -> str:
    """Return the type of a value, with links to the objects in it."""
    match found:
        case {"$ref": str(reference)}:
            return _link(_name(reference))
        case {"anyOf": list(choices)}:
            return " or ".join(dict.fromkeys(map(_type, choices)))
        case {"enum": list(values)} if found.get("type") != "object":
            return codes(map(str, values))
        case {"const": value}:
            return code(str(value))
        case {"prefixItems": list(items)}:
            return f"list of {', '.join(map(_type, items))}"
        case {"type": "array", "items": dict(item)}:
            return f"list of {_type(item)}"
        case {"type": "object", "additionalProperties": dict(value)}:
            return f"object with values: {_type(value)}"
        case {"type": str(name)}:
            return {"null": "null", "array": "list", "boolean": "true or false", "string": "text"}.get(name, name)
        case _:
            return "anything"


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _link(name: str) -> str:
    return f"[{name}](#{re.sub(r'[^a-z0-9_-]', '', name.lower())})"
