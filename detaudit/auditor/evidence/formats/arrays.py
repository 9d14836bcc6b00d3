"""Find the arrays and tensors among the stand-ins of a pickle, named by the keys and attributes that lead there."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from detaudit.auditor.evidence.formats import Part, extents
from detaudit.auditor.evidence.formats.standins import Array, Bag, Blob, Call, Global, Mapping, Persistent, digest_of

_SHOWN = 2
"""Keys by which what lies beside the arrays is named: ``optimizer.param_groups``."""

MOST_TEXT = 2**27
"""Characters of names and texts, each as often as it is met."""

MOST_DEPTH = 500
"""Containers within containers; pickle itself writes no more than about 1000."""

_HELD_BY_MODULES = ("_modules", "_parameters", "_buffers")
"""Attributes of torch's modules that a name leaves out: ``encoder.weight``."""

_RECONSTRUCT, _FROM_BUFFER, _REBUILD = "multiarray _reconstruct", "numeric _frombuffer", "torch._utils _rebuild_"

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
    found = re.match(r".([a-zA-Z])(\d+)", dtype)
    if found is None:
        raise ValueError(f"its dtype {dtype} is unknown")
    return int(found[2]) * (4 if found[1] == "U" else 1)


def held(root: Any, tensor: Tensor = lambda name, arguments: None) -> Iterator[Part]:
    """Yield all arrays and tensors, then what lies beside them, in few parts with an empty dtype."""
    beside: dict[str, list[str]] = {}
    names: Counter[str] = Counter()
    size = 0
    for keys, value in _leaves(root):
        size += sum(map(len, keys)) + (len(value) if isinstance(value, str) else 0)
        if size > MOST_TEXT:
            raise ValueError("it holds too much text")
        shown = ".".join([key for key in keys if key not in _HELD_BY_MODULES])
        part = _array(shown, value) or _of_torch(shown, value, tensor)
        if part is None:
            beside.setdefault(".".join(keys[:_SHOWN]), []).append(_text(keys, value))
        else:
            names[part.name] += 1
            again = f" ({names[part.name]})" if names[part.name] > 1 else ""
            yield Part(f"{part.name}{again}", part.pieces, part.dtype, part.shape)
    for name, texts in beside.items():
        yield Part(name, iter("\n".join(texts).encode(errors="surrogatepass") for _ in range(1)))


Keys = tuple[str, ...]


def _leaves(root: Any) -> Iterator[tuple[Keys, Any]]:
    """Yield arrays, tensors and single values with the keys that lead to them; each container once."""
    rest: list[tuple[Keys, Any]] = [((), root)]
    seen: dict[int, Any] = {}
    while rest:
        keys, value = rest.pop()
        inside = None if id(value) in seen else _inside(keys, value)
        if inside is None:
            if id(value) not in seen:
                yield keys, value
            continue
        if len(keys) > MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        seen[id(value)] = value
        rest += reversed(inside)


def _inside(keys: Keys, value: Any) -> list[tuple[Keys, Any]] | None:
    """Return what a container holds, None for a leaf."""
    match value:
        case Call() if _is_array(value) or _is_tensor(value):
            return None
        case Call(arguments=tuple([first, *_])) if _called(value).startswith(_REBUILD):
            return [(keys, value.function), (keys, first), *_listed(keys, value.arguments)[1:]]
        case Call():
            state = value.state if isinstance(value.state, tuple) else (value.state,)
            called = [(keys, one) for one in (value.function, value.arguments, *state) if one is not None]
            return [*called, *_listed(keys, value.items), *_keyed(keys, value.pairs)]
        case Mapping():
            return _keyed(keys, value.pairs)
        case list() | tuple():
            return _listed(keys, value)
        case Bag():
            return [(keys, one) for one in value.items]
        case _:
            return None


def _listed(keys: Keys, items: Any) -> list[tuple[Keys, Any]]:
    return [((*keys, str(place)), item) for place, item in enumerate(items)]


def _keyed(keys: Keys, pairs: Any) -> list[tuple[Keys, Any]]:
    return [((*keys, str(key) if isinstance(key, str | int) else "?"), value) for key, value in pairs]


def _called(value: Any) -> str:
    return value.function.name if isinstance(value, Call) and isinstance(value.function, Global) else ""


def _is_array(value: Any) -> bool:
    """Whether NumPy makes an array of numbers or texts here; one of objects is walked through."""
    name = _called(value)
    if name.endswith(_RECONSTRUCT):
        return isinstance(value.state, tuple) and isinstance(value.state[4], bytes | Blob)
    return name.endswith(_FROM_BUFFER)


def _array(name: str, value: Any) -> Part | None:
    if isinstance(value, Array):
        return Part(name, iter([value.digest.encode()]), value.dtype, value.shape)
    if not isinstance(value, Call) or not _is_array(value):
        return None
    if _called(value).endswith(_FROM_BUFFER):
        data, dtype, shape, order = value.arguments
        fortran = order == "F"
    else:
        _, shape, dtype, fortran, data = value.state
    digest = data.digest if isinstance(data, Blob) else digest_of([data])
    return Part(name, iter([digest.encode()]), f"{kind_of(dtype)}{' F' if fortran else ''}", extents(shape))


def _is_tensor(value: Call) -> bool:
    arguments = value.arguments
    rebuilt = _called(value).startswith(_REBUILD) and isinstance(arguments, tuple)
    return rebuilt and len(arguments) >= 4 and isinstance(arguments[0], Persistent)


def _of_torch(name: str, value: Any, tensor: Tensor) -> Part | None:
    if isinstance(value, Call) and _is_tensor(value):
        return tensor(name, value.arguments)
    return None


def _text(keys: Keys, value: Any) -> str:
    match value:
        case Global(name=name):
            shown = name
        case Persistent():
            shown = "outside"
        case Call():
            shown = _called(value)
        case _:
            shown = repr(value)
    return f"{'.'.join(keys)}={shown}"
