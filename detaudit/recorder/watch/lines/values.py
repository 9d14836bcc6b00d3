"""Digest the values of variables, from their contents only, never from an identity or an address."""

from __future__ import annotations

import os
import sys

from .... import redact
from ...training import digest
from .arrays import MemoryDigest, is_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, NamedTuple

    class Description(NamedTuple):
        """The recorded properties of a value; see ``assigned`` in wire.py."""

        digest: str
        bag: str
        text: str
else:
    from collections import namedtuple

    Description = namedtuple("Description", "digest bag text")

# Always check type(value), never isinstance: reading the __class__ of a proxy runs user code.

_MOST_ELEMENTS = 10_000
"""Elements of one value that are digested at most."""

_DEPTH = 4
_LONGEST_TEXT = 80
_SCALARS = (bool, int, float, complex, str, bytes)
_CONTAINERS = (list, tuple, dict, set, frozenset)
_REPR_IS_VALUE = {
    ("builtins", "range"),
    ("builtins", "bytearray"),
    ("datetime", "date"),
    ("datetime", "datetime"),
    ("datetime", "time"),
    ("datetime", "timedelta"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("uuid", "UUID"),
}
"""Types whose repr depends only on their value."""

_SECRETS = ("auth", "cookie", "credential", "key", "passw", "secret", "token")
"""Names that contain one of these are recorded without text; a digest is enough to compare them."""

_KNOWN = redact.secrets(getattr(sys, "orig_argv", None) or getattr(sys, "argv", []), os.environ)
"""Texts that contain one of these are left out too."""


def can_change(value: Any) -> bool:
    """Return whether a value can change in place, and can be digested."""
    return issubclass(type(value), (list, dict, set, bytearray)) or is_array(value)


class Values:
    """Digests values for one thread."""

    def __init__(self) -> None:
        self._memory = MemoryDigest()
        self._left = 0

    def describe(self, name: str, value: Any) -> Description:
        """Return the description of a value. If the value cannot be digested, its digest is its type, without ``:``."""
        self._left = _MOST_ELEMENTS
        if is_array(value):
            return Description(*self._memory.describe(value), "")
        bag = ""
        if issubclass(type(value), _CONTAINERS):
            parts = list(self._parts(value, 1))
            bag = "%d:%016x" % (len(parts), sum([_word(part) for part in parts]) % 2**64) if self._left > 0 else ""
            token = _joined(value, parts)
        else:
            token = self._token(value, 0)
        kind, found, rest = token.partition(":")
        return Description(kind + found + (digest.of_bytes(_encoded(rest)) if found else ""), bag, _text(name, value))

    def _token(self, value: Any, depth: int) -> str:
        self._left -= 1
        kind = _kind(value)
        if value is None or issubclass(type(value), _SCALARS):
            return _plain(value)
        if issubclass(type(value), _CONTAINERS):
            return _joined(value, self._parts(value, depth + 1)) if depth < _DEPTH else "%s:%d" % (kind, _length(value))
        if is_array(value):
            return self._memory.describe(value)[0]
        if (type(value).__module__, type(value).__name__) in _REPR_IS_VALUE:
            return kind + ":" + repr(value)
        return self._library_token(value) or kind

    def _library_token(self, value: Any) -> str:
        """Return the token of a value whose type belongs to a known library, ``""`` for others."""
        if _is(value, "numpy", "generic"):
            return "%s:%s" % (_kind(value), "" if value.dtype.hasobject else value.tobytes().hex())
        if _is(value, "pathlib", "PurePath"):
            return _kind(value) + ":" + str(value)
        if _is(value, "torch.nn", "Module"):
            return _kind(value) + ":" + digest.of_bytes(_encoded("\1".join(self._weights(value, set()))))
        return ""

    def _weights(self, module: Any, seen: set[int]) -> Iterator[str]:
        """Yield the weights and buffers of a module without calling its methods, which may be user code."""
        if id(module) in seen or module is None:
            return
        seen.add(id(module))
        kept = module.__dict__
        for part in ("_parameters", "_buffers"):
            for name, tensor in dict.items(kept.get(part, {})):
                yield "%s=%s" % (name, self._memory.describe(tensor)[0])
        for name, child in dict.items(kept.get("_modules", {})):
            yield name
            yield from self._weights(child, seen)

    def _parts(self, value: Any, depth: int) -> Iterator[str]:
        if issubclass(type(value), dict):
            for key, item in dict.items(value):
                if self._left <= 0:
                    return
                yield self._token(key, depth) + "\2" + self._token(item, depth)
            return
        for item in _base(value).__iter__(value):
            if self._left <= 0:
                return
            yield self._token(item, depth)


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__qualname__)


def _is(value: Any, module: str, name: str) -> bool:
    return issubclass(type(value), getattr(sys.modules.get(module), name, ()))


def _plain(value: Any) -> str:
    if value is None:
        return "NoneType:None"
    plain = next(kind for kind in _SCALARS if issubclass(type(value), kind))
    # Python refuses to convert an int of thousands of digits to decimal.
    text = int.__format__(value, "x") if plain is int else plain.__repr__(value)
    # The texts of the parts of a container are joined, so a long one is replaced by its digest.
    return _kind(value) + ":" + (text if len(text) <= _LONGEST_TEXT else digest.of_bytes(_encoded(text)))


def _joined(value: Any, parts: Iterable[str]) -> str:
    return "%s:%s" % (_kind(value), digest.of_bytes(_encoded("\1".join([str(_length(value)), *parts]))))


def _length(value: Any) -> int:
    return int(_base(value).__len__(value))


def _base(value: Any) -> Any:
    """Return the built-in type of a container. The methods of a subclass may be user code."""
    return next(kind for kind in _CONTAINERS if issubclass(type(value), kind))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _word(part: str) -> int:
    return digest.small(_encoded(part))


def _text(name: str, value: Any) -> str:
    """Return a value as readable text, ``""`` if it is long, not plain, or may be a secret."""
    within = [value]
    if type(value) in _CONTAINERS:
        within = [*value, *value.values()] if type(value) is dict and len(value) <= _LONGEST_TEXT else [*value]
    if len(within) > _LONGEST_TEXT or not all([_is_short(one) for one in within]):
        return ""
    text = repr(value)
    secret = any([part in name.lower() or part in text.lower() for part in _SECRETS])
    secret = secret or any([one in text for one in _KNOWN])
    return redact.text(text) if len(text) <= _LONGEST_TEXT and not secret else ""


def _is_short(value: Any) -> bool:
    kind = type(value)
    if kind in (str, bytes):
        return len(value) <= _LONGEST_TEXT
    if kind is int:
        return bool(value.bit_length() <= 4 * _LONGEST_TEXT)
    return value is None or kind in _SCALARS or (kind.__module__, kind.__name__) in _REPR_IS_VALUE
