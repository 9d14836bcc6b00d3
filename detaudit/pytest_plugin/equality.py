"""Compare two values of any library bit for bit, part by part, without importing the library."""

import ctypes
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from detaudit.judge import tensors
from detaudit.model.difference import tensor_type
from detaudit.model.fact import count

MOST_SHOWN = 5
_DEEPEST = 64
_PLAIN = (bool, int, str, bytes, bytearray, type(None))


@dataclass(frozen=True)
class Tensor:
    """A tensor: its type, its shape, and its bytes in C order."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True)
class PartDifference:
    """A part that differs: its path, its kind, and how it differs."""

    path: str
    kind: str
    lines: tuple[str, ...]


def difference(a: object, b: object) -> str:
    """Return where and by how much two values differ, ``""`` if they are bit-identical.

    Raises TypeError for a value of an unsupported type, ValueError for one that is nested too deeply.
    """
    differences = list(_differences(a, b, "", 0))
    if not differences:
        return ""
    lines = [f"not bit-identical: {len(differences):,} parts differ" if len(differences) > 1 else "not bit-identical"]
    for one in differences[:MOST_SHOWN]:
        lines.append(f"  {one.path or 'the value'}{f' ({one.kind})' if one.kind else ''}:")
        lines += [f"    {line}" for line in one.lines]
    more = len(differences) - MOST_SHOWN
    return "\n".join(lines + ([f"  and {more} more"] if more > 0 else []))


def _differences(a: Any, b: Any, path: str, depth: int) -> Iterator[PartDifference]:
    if depth > _DEEPEST:
        raise ValueError(f"nested more than {_DEEPEST} levels deep")
    a, b = _normalized(a), _normalized(b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        yield from _mapping_differences(a, b, path, depth)
    elif (isinstance(a, list) and isinstance(b, list)) or (isinstance(a, tuple) and isinstance(b, tuple)):
        if len(a) != len(b):
            yield PartDifference(path, "", (f"{count(len(a), 'part')} vs {len(b):,}",))
            return
        fields = getattr(a, "_fields", None)  # Only a named tuple has them.
        for index, pair in enumerate(zip(a, b, strict=True)):
            yield from _differences(*pair, f"{path}.{fields[index]}" if fields else f"{path}[{index}]", depth + 1)
    else:
        yield from _leaf_differences(a, b, path)


def _mapping_differences(a: Mapping[Any, Any], b: Mapping[Any, Any], path: str, depth: int) -> Iterator[PartDifference]:
    for key in (*a, *(key for key in b if key not in a)):
        if key in a and key in b:
            yield from _differences(a[key], b[key], f"{path}[{key!r}]", depth + 1)
        else:
            yield PartDifference(f"{path}[{key!r}]", "", (f"only in the {'first' if key in a else 'second'}",))


def _leaf_differences(a: Any, b: Any, path: str) -> Iterator[PartDifference]:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            yield PartDifference(path, "", (f"{tensor_type(a.dtype, a.shape)} vs {tensor_type(b.dtype, b.shape)}",))
            return
        tensor_difference = tensors.difference(a.dtype, a.shape, a.data, b.data)
        if tensor_difference is not None:
            yield PartDifference(path, tensor_type(a.dtype, a.shape), tuple(tensor_difference.lines()))
    elif type(a) is not type(b):
        yield PartDifference(path, "", (f"{_shown(a)} vs {_shown(b)}",))
    elif a != b:
        yield PartDifference(path, type(a).__name__, (f"{a!r} vs {b!r}",))


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return tensor_type(value.dtype, value.shape)
    name = type(value).__name__
    return f"a {name}" if isinstance(value, Mapping | list | tuple) else f"the {name} {value!r}"


def _normalized(value: Any) -> Any:
    """Return a value as a structure, a plain value or a Tensor. Raises TypeError for anything else."""
    if isinstance(value, Tensor | Mapping | list | tuple):
        return value
    if isinstance(value, float):
        return Tensor("float64", (), struct.pack("=d", value))
    if isinstance(value, complex):
        return Tensor("complex128", (), struct.pack("=dd", value.real, value.imag))
    if type(value) in _PLAIN:
        return value
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _of_torch(value)
    for method in ("numpy", "__array__"):  # TensorFlow and Keras; JAX and NumPy itself
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return _of_numpy(getattr(value, method)())
    raise TypeError(f"cannot compare a {type(value).__module__}.{type(value).__qualname__} bit for bit: pass numbers, "
                    "strings, arrays, tensors, or lists, tuples and dicts of them, such as a state_dict()")  # fmt: skip


def _of_torch(value: Any) -> Any:
    value = value.detach()
    if str(value.layout) == "torch.sparse_coo":
        value = value.coalesce()
        return {"size": tuple(value.shape), "indices": value.indices(), "values": value.values()}
    if str(value.layout) != "torch.strided" or value.is_quantized or value.device.type == "meta":
        raise TypeError(f"cannot compare a {value.dtype} tensor with layout {value.layout} on {value.device.type}: "
                        "pass its parts")  # fmt: skip
    value = value.cpu().resolve_conj().resolve_neg().contiguous()  # NumPy may be missing, and has no bfloat16.
    size = value.numel() * value.element_size()
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return Tensor(str(value.dtype).removeprefix("torch."), tuple(value.shape), data)


def _of_numpy(value: Any) -> Any:
    """Return an array or a scalar of NumPy as a Tensor, and anything else normalized."""
    if not hasattr(value, "tobytes") or not hasattr(value, "dtype"):
        return _normalized(value)
    dtype = value.dtype
    if dtype.kind in "OUST":
        return {"shape": tuple(value.shape), "items": value.tolist()}
    if dtype.names:
        return {name: value[name] for name in dtype.names}
    if dtype.kind in "fc" and dtype.name in ("float96", "float128", "complex192", "complex256"):
        raise TypeError(f"{dtype.name} has padding bits; compare it as float64 or complex128")
    value = value if dtype.isnative else value.astype(dtype.newbyteorder("="))
    return Tensor(dtype.name, tuple(value.shape), value.tobytes())
