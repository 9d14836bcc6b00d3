"""Which names a line may change, and digests of their values."""

from __future__ import annotations

import ctypes
import dis
import inspect
import os
import re
import sys

from ... import redact
from ..process import guard
from ..training import digest

# Digest the memory of arrays and tensors without running an operation of torch, which a mode or a trace would see.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


_MOST_BYTES = 2**26
"""Bytes of an array that are digested at most."""

_MOST_SORTED = 2**18
_ARRAYS = {("numpy", "ndarray"), ("numpy", "memmap"), ("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}
_WORDS = (1, 2, 4, 8)


def is_array(value: Any) -> bool:
    """Return whether a value is an array or a tensor, and not of a subclass, which may override its methods."""
    kind = type(value)
    return (kind.__module__, kind.__name__) in _ARRAYS


class MemoryDigest:
    """Digests arrays for one thread, with a buffer of its own."""

    def __init__(self) -> None:
        self._digest: Any = None

    def describe(self, value: Any, sort: bool = True) -> tuple[str, str]:
        """Return two digests of an array, the second ignoring order; its type and ``""`` if it cannot be read.

        Without ``sort``, there is no second one.
        """
        kind = type(value).__module__ + "." + type(value).__name__
        numpy = sys.modules.get("numpy")
        try:
            read = _of_tensor(value, numpy) if type(value).__module__.startswith("torch") else _of_array(value)
            if read is None or numpy is None:
                return kind, ""
            if self._digest is None:
                self._digest = digest.NumpyDigest(numpy)
            dtype, array = read
            described = "%s:%s[%s]" % (kind, dtype, ",".join([str(size) for size in array.shape]))
            words, bag = self._words(array, numpy, sort)
        except Exception as error:  # such as for a tensor inside a transform, which has no memory
            guard.pass_on(error)
            return kind, ""
        return described + words, bag

    def _words(self, array: Any, numpy: Any, sort: bool) -> tuple[str, str]:
        if array.nbytes > _MOST_BYTES:
            if not array.flags.c_contiguous:
                return "", ""
            array = array.reshape(-1)[: _MOST_BYTES // array.itemsize]
        flat = numpy.ascontiguousarray(array).reshape(-1)
        words = ":%016x" % self._digest.words(flat)
        if not sort or not 1 < flat.size <= _MOST_SORTED or flat.itemsize not in _WORDS:
            return words, ""
        return words, "%d:%016x" % (flat.size, self._digest.words(numpy.sort(flat.view("u%d" % flat.itemsize))))


def _of_array(array: Any) -> tuple[str, Any] | None:
    return None if array.dtype.hasobject else (array.dtype.str, array)


def _of_tensor(tensor: Any, numpy: Any) -> tuple[str, Any] | None:
    torch: Any = sys.modules["torch"]
    # torch.jit.trace would record even a read of the shape as an operation.
    if numpy is None or torch._C._get_tracing_state() is not None:
        return None
    with torch._C.DisableTorchFunction():
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
            return None
        shape, strides = tuple(tensor.shape), tensor.stride()
        start, size, dtype = tensor.data_ptr(), tensor.element_size(), str(tensor.dtype)[len("torch.") :]
        owned = tensor.untyped_storage().nbytes() - tensor.storage_offset() * size
    return dtype, _view(numpy, start, owned, shape, [stride * size for stride in strides], size)


def _view(numpy: Any, start: int, owned: int, shape: Sequence[int], strides: Sequence[int], size: int) -> Any:
    kind = "V%d" % size
    if 0 in shape:
        return numpy.zeros(shape, kind)
    span = size + sum([(length - 1) * stride for length, stride in zip(shape, strides)])
    if not start or span > owned:
        raise ValueError("the storage of this tensor was resized or freed")
    return numpy.ndarray(shape, kind, buffer=(ctypes.c_ubyte * span).from_address(start), strides=strides)


# Find the names whose value each line of a function may change, from its bytecode.

if TYPE_CHECKING:
    from types import CodeType
    from typing import NamedTuple

    class Name(NamedTuple):
        """A name, or an attribute of the name ``of``. ``stored`` is true if the line assigns to it."""

        text: str
        of: str
        stored: bool
        in_globals: bool
else:
    from collections import namedtuple

    Name = namedtuple("Name", "text of stored in_globals")

_VERB = re.compile("LOAD|STORE")
_SCOPES = ("_NAME", "_FAST", "_GLOBAL", "_DEREF", "_CLASSDEREF")
_COPIES = ("COPY", "DUP_TOP")


class Lines:
    """The names of one code object of a file, by line."""

    def __init__(self, code: CodeType, file: str) -> None:
        self.file = file
        self.first = code.co_firstlineno
        self.returns = "" if code.co_name.startswith("<") else code.co_name + "()"
        self.code = code  # keeps the code alive, so that its id remains unique
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self.arguments = [Name(name, "", True, False) for name in code.co_varnames[:count] if name[0] != "."]
        self._names = {} if _has_hidden_names(code) else _by_line(code)
        self._between: dict[tuple[int, int], list[Name]] = {}

    def between(self, done: int, coming: int) -> list[Name]:
        """Return the names to check after the line ``done`` and before the line ``coming``.

        They include the names that the coming line uses. This way, a change made through a different name is detected
        before this line, which did not cause it.
        """
        key = done, coming
        if key not in self._between:
            names = {(name.text, name.in_globals): name for name in self._names.get(coming, ()) if not name.stored}
            names.update({(name.text, name.in_globals): name for name in self._names.get(done, ())})
            self._between[key] = list(names.values())
        return self._between[key]


def _has_hidden_names(code: CodeType) -> bool:
    # In Python 3.12, reading the names of a class body would write to those of its comprehensions.
    return sys.version_info[:2] == (3, 12) and not code.co_flags & inspect.CO_OPTIMIZED and code.co_name != "<module>"


def _by_line(code: CodeType) -> dict[int, list[Name]]:
    starts = dict(dis.findlinestarts(code))
    by_line: dict[int, dict[tuple[str, bool], Name]] = {}
    line, before = code.co_firstlineno, None
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset) or line
        here = by_line.setdefault(line, {})
        names = _of_instruction(instruction, before, here)
        if code.co_name == "<module>":
            names = [name._replace(in_globals=True) for name in names]
        for name in names:
            key = name.text, name.in_globals
            if key not in here or name.stored:
                here[key] = name
        if names or instruction.opname not in _COPIES:
            before = names[-1] if names and not names[-1].stored else None
    return {line: list(names.values()) for line, names in by_line.items() if names}


def _of_instruction(
    instruction: dis.Instruction, before: Name | None, here: dict[tuple[str, bool], Name]
) -> list[Name]:
    operation, argument = instruction.opname, instruction.argval
    if operation in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"):
        stored = operation == "STORE_ATTR"
        if before is not None and not before.of:
            return [Name(before.text + "." + argument, before.text, stored, before.in_globals)]
        # Such as self.x += 1, which copies the object before it loads the attribute.
        return [n._replace(stored=True) for n in here.values() if stored and n.of and n.text == n.of + "." + argument]
    if not any([scope in operation for scope in _SCOPES]):
        return []
    arguments = argument if isinstance(argument, tuple) else (argument,)
    return [
        Name(name, "", verb == "STORE", "_GLOBAL" in operation)
        for verb, name in zip(_VERB.findall(operation), arguments)
        if isinstance(name, str) and not name.startswith((".", "__"))
    ]


# Digest the values of variables, from their contents only, never from an identity or an address.

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


_LIBRARIES_OF_TABLES, _TABLES = ("pandas", "polars"), ("DataFrame", "Series")
_MOST_COLUMNS = 256
_MOST_WATCHED = 2**16
"""Elements of a table that is digested before each line that uses it; larger ones, where they are assigned."""


def can_change(value: Any) -> bool:
    """Return whether a value can change in place, and can be digested in little time."""
    plain = issubclass(type(value), (list, dict, set, bytearray)) or is_array(value)
    return plain or (_is_table(value) and _size(value) <= _MOST_WATCHED)


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
        if _is_table(value):
            return Description(*self._table(value), "")
        bag = ""
        if issubclass(type(value), _CONTAINERS):
            parts = list(self._parts(value, 1))
            bag = "%d:%016x" % (len(parts), sum([_word(part) for part in parts]) % 2**64) if self._left > 0 else ""
            token = _joined(value, parts)
        else:
            token = self._token(value, 0)
        kind, separator, rest = token.partition(":")
        return Description(
            kind + separator + (digest.of_bytes(_encoded(rest)) if separator else ""), bag, _text(name, value)
        )

    def _token(self, value: Any, depth: int) -> str:
        self._left -= 1
        kind = _kind(value)
        if value is None or issubclass(type(value), _SCALARS):
            return _plain(value)
        if issubclass(type(value), _CONTAINERS):
            if depth >= _DEPTH:
                return "%s:%d" % (kind, _length(value))
            parts = self._parts(value, depth + 1)
            # Where the order of a set inside of a value matters, something else will have another value.
            return _joined(value, sorted(parts) if issubclass(type(value), (set, frozenset)) else parts)
        if is_array(value):
            return self._memory.describe(value)[0]
        if _is_table(value):
            return self._table(value)[0]
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

    def _table(self, value: Any) -> tuple[str, str]:
        """Return two digests of a table or a column of pandas or Polars, the second ignoring the order of rows."""
        kind = _kind(value)
        try:
            columns, sort = list(_columns(value)), _size(value) <= _MOST_SORTED
            described = [self._column(column.to_numpy(), sort) for _, column in columns]
        except Exception as error:  # of an extension of pandas, or without a library that converts it
            guard.pass_on(error)
            return kind, ""
        names = [str(name) for name, _ in columns]
        token, bag = (digest.of_bytes(_encoded("\1".join([*names, *[one[at] for one in described]]))) for at in (0, 1))
        return kind + ":" + token, bag if all([one[1] for one in described]) else ""

    def _column(self, array: Any, sort: bool) -> tuple[str, str]:
        if not array.dtype.hasobject:
            return self._memory.describe(array, sort)
        parts = [self._token(item, 1) for item in array[: max(0, self._left)].tolist()]
        return _joined(parts, parts), "%d:%016x" % (len(parts), sum([_word(part) for part in parts]) % 2**64)

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


def _is_table(value: Any) -> bool:
    """Return whether a value is a table or a column of pandas or Polars, and not of a subclass."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    known = library in _LIBRARIES_OF_TABLES and kind.__name__ in _TABLES
    return known and kind is getattr(sys.modules.get(library), kind.__name__, None)


def _size(table: Any) -> int:
    return int(table.shape[0]) * int(table.shape[-1] if len(table.shape) > 1 else 1)


def _columns(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns of a table, or a column itself, with their names; first those that pandas names rows by."""
    of_pandas = type(value).__module__.startswith("pandas")
    if of_pandas:
        yield "index", value.index
    if type(value).__name__ == "Series":
        yield value.name, value
    elif of_pandas:
        for at, name in enumerate(value.columns[:_MOST_COLUMNS]):
            yield name, value.iloc[:, at]
    else:
        yield from zip(value.columns[:_MOST_COLUMNS], value.get_columns())


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
