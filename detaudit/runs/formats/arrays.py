"""Find the values among the stand-ins of a pickle, named by the keys and attributes that lead there."""

import array
import datetime
import re
import struct
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from detaudit.runs.formats import Part, extents, number, opaque, text
from detaudit.runs.formats.standins import Array, Bag, Blob, Call, Global, Mapping, Persistent, digest_of

MOST_TEXT = 2**27
"""Characters of names and texts, each as often as it is met."""

MOST_DEPTH = 500
"""Containers within containers; pickle itself writes no more than about 1000."""

MOST_ELEMENTS = 1000
"""A longer list of numbers of one type is one array."""

TYPES = "types"
"""The part that has the names of all classes and functions, each with the path where it is."""

_HELD_BY_MODULES = ("_modules", "_parameters", "_buffers")
"""Attributes of torch's modules that a name leaves out: ``encoder.weight``."""

_RECONSTRUCT, _FROM_BUFFER, _REBUILD = "multiarray _reconstruct", "numeric _frombuffer", "torch._utils _rebuild_"
_SCALAR = "multiarray scalar"
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_PYTHON_STATE = 625
"""Numbers in the state of a ``random.Random``."""

Tensor = Callable[[str, Any], Part | None]
"""Returns a tensor of this name if torch is called so; arguments are those of ``torch._utils._rebuild_tensor_v2``."""


def kind_of(dtype: Any) -> str:
    """Return a dtype of NumPy in NumPy's spelling, with the names of its fields if it has any."""
    code, order, names = dtype.arguments[0], "|", None
    if dtype.state is not None:
        _, order, _, names = dtype.state[:4]
    if not all(isinstance(one, str) for one in (code, order, *(names or ()))):
        raise ValueError("its dtype is none")
    return f"{order if order != '=' else '<'}{code}{f' {names}' if names else ''}"


def item_size(dtype: str) -> int:
    """Return the bytes of one element."""
    match = re.match(r".([a-zA-Z])(\d+)", dtype)
    if match is None:
        raise ValueError(f"its dtype {dtype} is unknown")
    return int(match[2]) * (4 if match[1] == "U" else 1)


def contents(root: Any, tensor: Tensor = lambda name, arguments: None, prefix: str = "") -> Iterator[Part]:
    """Yield all values, then the names of what is called. Names may be the same: see ``formats.unique``."""
    types: list[str] = []
    size = 0
    for leaf in _leaves((prefix,) if prefix else (), root):
        size += sum(map(len, leaf.keys)) + (len(leaf.value) if isinstance(leaf.value, str) else 0)
        if size > MOST_TEXT:
            raise ValueError("it holds too much text")
        shown = ".".join([key for key in leaf.keys if key not in _HELD_BY_MODULES])
        if isinstance(leaf.value, Global | Persistent):
            types.append(f"{shown}={leaf.value.name if isinstance(leaf.value, Global) else 'outside'}")
            continue
        part = _part(shown, leaf.value, tensor)
        yield part if not leaf.generator else Part(part.name, part.pieces, part.dtype, part.shape, part.text, True)
    if types:
        yield opaque(f"{prefix} {TYPES}".strip(), "\n".join(types).encode(errors="surrogatepass"))


Keys = tuple[str, ...]


class _Leaf(NamedTuple):
    keys: Keys
    value: Any
    generator: bool


def _leaves(keys: Keys, root: Any) -> Iterator[_Leaf]:
    """Yield arrays, tensors and single values with the keys that lead to them; each container once."""
    rest = [_Leaf(keys, root, False)]
    seen: dict[int, Any] = {}
    while rest:
        leaf = rest.pop()
        inside = None if id(leaf.value) in seen else _inside(leaf.keys, leaf.value)
        if inside is None:
            if id(leaf.value) not in seen:
                yield leaf
            continue
        if len(leaf.keys) > MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        seen[id(leaf.value)] = leaf.value
        generator = leaf.generator or _is_generator(leaf.value)
        rest += [_Leaf(below, one, generator) for below, one in reversed(inside)]


def _is_generator(value: Any) -> bool:
    """Whether a container holds the state of a generator of ``random`` or NumPy, whatever it is called."""
    match value:
        case Call():
            return _called(value).startswith("numpy.random")
        case Mapping(pairs=pairs):
            return any(key == "bit_generator" for key, _ in pairs)
        case (str(name), *_):
            return name in _BIT_GENERATORS and len(value) == 5
        case (int(), state, _):
            return isinstance(state, tuple) and len(state) == _PYTHON_STATE
        case _:
            return False


def _inside(keys: Keys, value: Any) -> list[tuple[Keys, Any]] | None:
    """Return what a container holds, None for a leaf."""
    match value:
        case Call(arguments=(_, _, _, _, tuple(quantizer), *_)) if _called(value) == _QUANTIZED and _is_tensor(value):
            stored = Call(Global(_TENSOR), value.arguments[:4])
            return [(keys, stored), *_listed((*keys, "quantizer"), quantizer)]
        case Call() if _is_array(value) or _is_tensor(value) or _single(value) is not None:
            return None
        case Call(state=(_, shape, _, _, list(items))) if _called(value).endswith(_RECONSTRUCT):  # of objects
            return [*_listed(keys, items), ((*keys, "shape"), _canonical(shape))]
        case Call(arguments=(function, kind, tuple(arguments), *state)) if _called(value) == _SUBCLASS:
            return [(keys, kind), (keys, Call(function, arguments)), *_listed(keys, state)]
        case Call(arguments=(kind, base, state)) if _called(value) in _RECONSTRUCTORS:
            made = [(keys, one) for one in (kind, base, state) if one is not None]
            return [*made, *_state(keys, value), *_listed(keys, value.items), *_keyed(keys, value.pairs)]
        case Call(arguments=tuple([first, *_])) if _called(value).startswith(_REBUILD):
            return [(keys, value.function), (keys, first), *_listed(keys, value.arguments)[1:]]
        case Call(arguments=(blocks, axes)) if _called(value) == _BLOCKS and (columns := _columns(blocks, axes)):
            above = keys[:-1] if keys[-1:] == ("_mgr",) else keys
            return [*(((*above, column), one) for column, one in columns), *_listed((*above, "axes"), axes)]
        case Call():
            called = [(keys, one) for one in (value.function, value.arguments) if one not in (None, ())]
            return [*called, *_state(keys, value), *_listed(keys, value.items), *_keyed(keys, value.pairs)]
        case Mapping() if value.pairs:
            return _keyed(keys, value.pairs)
        case list() | tuple() if value and _packed(value) is None:
            return _listed(keys, value)
        case _:
            return None


# A table of pandas: arrays of several columns of one type each, and the names of the columns.
# See BlockManager.__reduce__ and _unpickle_block in pandas/_libs/internals.pyx.


def _columns(blocks: Any, axes: Any) -> list[tuple[str, Any]] | None:
    """Return the columns of a table with their names, None if it is not as pandas writes it now.

    Columns that share an array too large to be kept are one block, named by its place; so are those without names.
    """
    if not (isinstance(blocks, tuple) and isinstance(axes, list | tuple) and axes):
        return None
    names = _names(axes[0])
    columns: list[tuple[str, Any]] = []
    for block_number, block in enumerate(blocks):
        match block:
            case Call(arguments=(values, Call(arguments=(int(first), int(end), int(step))), int())) if step > 0:
                placed = names[first:end:step]
            case Call(arguments=(values, Call() as places, int())) if _is_array(places):
                placed = [names[place] for place in _integers(places) if 0 <= place < len(names)]
            case _:
                return None
        rows = [values] if len(placed) == 1 else _rows(values, len(placed))
        if rows is None or not placed:
            columns.append((f"block {block_number}", block))
        else:
            columns += [(name, _dates(row)) for name, row in zip(placed, rows, strict=True)]
    return columns


def _integers(array: Call) -> list[int]:
    part = _array("", array)
    data = b"".join(part.pieces)
    return list(struct.unpack(f"<{len(data) // 8}q", data)) if part.dtype == "<i8" and len(data) % 8 == 0 else []


def _names(axis: Any) -> list[str]:
    """Return the texts of an index, which are in the first list of texts within it."""
    rest, seen = [axis], 0
    while rest and seen < _MOST_CANONICAL:
        value = rest.pop()
        seen += 1
        match value:
            case list() if value and all(isinstance(one, str) for one in value):
                return value
            case Call():
                rest += [value.items, value.state, value.arguments]
            case list() | tuple():
                rest += reversed(value)
            case Mapping():
                rest += [one for _, one in reversed(value.pairs)]
            case _:
                continue
    return []


def _rows(values: Any, count: int) -> list[Array] | None:
    """Return the rows of an array of numbers whose bytes are known."""
    if not (isinstance(values, Call) and _is_array(values)):
        return None
    part = _array("", values)
    data = b"".join(part.pieces)
    if " " in part.dtype or part.shape[:1] != (count,) or len(part.shape) != 2:
        return None
    size = item_size(part.dtype) * part.shape[1]
    if len(data) != size * count:
        return None
    parts = [data[at : at + size] for at in range(0, len(data), size)] if size else [b""] * count
    return [Array(part.dtype, part.shape[1:], digest_of([one]), one) for one in parts]


def _dates(values: Any) -> Any:
    """Return the numbers of an array of dates or durations, as a clock has them; other values as they are."""
    match values:
        case Call(state=(_, Call() as array, *_)) if _is_array(array):
            part = _array("", array)
            if part.dtype[1:3] in ("M8", "m8"):
                data = b"".join(part.pieces)
                return Array(f"{part.dtype[0]}i8", part.shape, digest_of([data]), data)
    return values


_BLOCKS = "pandas.core.internals.managers BlockManager"
_SUBCLASS = "torch._tensor _rebuild_from_type_v2"
_TENSOR, _QUANTIZED = "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_qtensor"
_RECONSTRUCTORS = ("copy_reg _reconstructor", "copyreg _reconstructor")


def _state(keys: Keys, value: Call) -> list[tuple[Keys, Any]]:
    state = value.state if isinstance(value.state, tuple) and not _is_generator(value.state) else (value.state,)
    return [(keys, one) for one in state if one is not None and not (isinstance(one, Mapping) and not one.pairs)]


def _listed(keys: Keys, items: Any) -> list[tuple[Keys, Any]]:
    return [((*keys, str(index)), item) for index, item in enumerate(items)]


def _keyed(keys: Keys, pairs: Any) -> list[tuple[Keys, Any]]:
    return [
        ((*keys, key if isinstance(key, str) else _canonical(key)), Bag(value) if key == _FROM_A_SET else value)
        for key, value in pairs
    ]


_FROM_A_SET = "__ignoreds"
"""The names of attributes that gensim saved elsewhere, in the order of a set (``SaveLoad._save_specials``)."""


def _called(value: Any) -> str:
    return value.function.name if isinstance(value, Call) and isinstance(value.function, Global) else ""


def _is_array(value: Any) -> bool:
    """Whether NumPy makes an array of numbers or texts here; one of objects is walked through."""
    name = _called(value)
    if name.endswith(_RECONSTRUCT):
        return isinstance(value.state, tuple) and isinstance(value.state[4], bytes | Blob)
    return name.endswith(_FROM_BUFFER)


def _is_tensor(value: Call) -> bool:
    arguments = value.arguments
    rebuilt = _called(value).startswith(_REBUILD) and isinstance(arguments, tuple)
    return rebuilt and len(arguments) >= 4 and isinstance(arguments[0], Persistent)


def _part(name: str, value: Any, tensor: Tensor) -> Part:
    """Return a value that holds no others."""
    match value:
        case Array():
            return Part(name, iter([value.data or _mark(value.digest)]), value.dtype, value.shape)
        case Call() if _is_array(value):
            return _array(name, value)
        case Call() if _is_tensor(value):
            return tensor(name, value.arguments) or text(name, "tensor")
        case Call():
            single = _single(value)
            return text(name, single or "") if isinstance(single, str | None) else number(name, single)
        case bool() | None:
            return text(name, str(value))
        case int() | float():
            return number(name, value)
        case str():
            return text(name, value)
        case bytes() | bytearray():
            return opaque(name, bytes(value))
        case Blob():
            return opaque(name, _mark(value.digest))
        case list() | tuple() if not value:
            return text(name, "[]")
        case list() | tuple():
            dtype, packed = _packed(value) or ("", b"")
            return Part(name, iter([packed]), dtype, (len(value),))
        case _:
            return text(name, _canonical(value))


def _mark(digest: str) -> bytes:
    return f"#{digest}".encode()


def _array(name: str, value: Call) -> Part:
    if _called(value).endswith(_FROM_BUFFER):
        data, dtype, shape, order, *axes = value.arguments
        layout = f" K{','.join(map(str, extents(axes[0])))}" if order == "K" and axes else " F" * (order == "F")
    else:
        _, shape, dtype, fortran, data = value.state
        layout = " F" if fortran else ""
    kept = (data.data or _mark(data.digest)) if isinstance(data, Blob) else bytes(data)
    return Part(name, iter([kept]), f"{kind_of(dtype)}{layout}", extents(shape))


def _packed(items: Any) -> tuple[str, bytes] | None:
    """Return a long list of numbers of one type as an array; None for all else."""
    if len(items) <= MOST_ELEMENTS and len(items) != _PYTHON_STATE:
        return None
    kinds = {*map(type, items)}
    order = "<" if sys.byteorder == "little" else ">"
    if kinds == {float}:
        return f"{order}f8", array.array("d", items).tobytes()
    if kinds == {int} and all(-(2**63) <= one < 2**63 for one in items):
        return f"{order}i8", array.array("q", items).tobytes()
    return None


_SCALARS = {"f2": "e", "f4": "f", "f8": "d", "b1": "?"}
_SCALARS |= {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"}


def _single(value: Call) -> int | float | str | None:
    """Return what a call makes that is one number or text, such as a NumPy scalar, a date or a path, else None."""
    name, arguments = _called(value), value.arguments
    if not isinstance(arguments, tuple | list):
        return None
    try:
        if name.endswith(_SCALAR) and len(arguments) == 2:
            dtype, data = arguments
            kind = kind_of(dtype)
            if kind[1:] in _SCALARS and isinstance(data, bytes):
                scalar = struct.unpack(f"{'>' if kind[0] == '>' else '<'}{_SCALARS[kind[1:]]}", data)[0]
                return str(scalar) if isinstance(scalar, bool) else scalar
            return f"{kind} {data.hex() if isinstance(data, bytes) else _canonical(data)}"
        if name in ("datetime datetime", "datetime date", "datetime time") and isinstance(arguments[0], bytes):
            kind_ = {"datetime": datetime.datetime, "date": datetime.date, "time": datetime.time}[name.split()[1]]
            zone = f" {_canonical(arguments[1])}" if len(arguments) > 1 else ""
            return f"{kind_(arguments[0]).isoformat()}{zone}"
        if name == "datetime timedelta":
            return datetime.timedelta(*arguments).total_seconds()
        if name.startswith(("pathlib ", "pathlib._local ")) and all(isinstance(one, str) for one in arguments):
            return "/".join(arguments).replace("//", "/", 1)
        if name == "uuid UUID" and isinstance(value.state, Mapping):
            return str(uuid.UUID(int=dict(value.state.pairs)["int"]))
    except (TypeError, ValueError, LookupError, struct.error, OverflowError):
        return None
    return None


_MOST_CANONICAL = 100_000
"""Elements within the elements of a set or a key."""


def _canonical(value: Any) -> str:
    """Return a text that is the same for equal values: the elements of sets are sorted."""
    count = 0

    def shown(one: Any, depth: int) -> str:
        nonlocal count
        count += 1
        if count > _MOST_CANONICAL or depth > MOST_DEPTH // 5:
            raise ValueError("a set or a key in it is too large")
        match one:
            case Bag():
                return f"{{{', '.join(sorted(shown(item, depth + 1) for item in one.items))}}}"
            case list() | tuple():
                return f"({', '.join(shown(item, depth + 1) for item in one)})"
            case Mapping():
                pairs = sorted(f"{shown(key, depth + 1)}: {shown(item, depth + 1)}" for key, item in one.pairs)
                return f"{{{', '.join(pairs)}}}"
            case Global():
                return str(one.name)
            case Blob():
                return str(one.digest)
            case Array():
                return f"{one.dtype}{one.shape}{one.digest}"
            case Call():
                single = _single(one)
                below = (one.function, one.arguments, one.state, one.items, one.pairs)
                return str(single) if single is not None else f"({', '.join(shown(item, depth + 1) for item in below)})"
            case Persistent():
                return "outside"
            case _:
                return repr(one) if isinstance(one, int | float | complex | str | bytes | None) else "?"

    return shown(value, 0)
