"""JSON of what was found, also of names that are not UTF-8."""

from typing import Any

import msgspec


def encode(found: object) -> bytes:
    """Return a value as JSON. Lone surrogates, which stand for bytes that are not UTF-8, are escaped as text."""
    try:
        return msgspec.json.encode(found)
    except UnicodeEncodeError:
        return msgspec.json.encode(_escaped(msgspec.to_builtins(found)))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(one) for key, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value
