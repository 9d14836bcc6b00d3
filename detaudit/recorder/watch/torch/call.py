"""Save a call of an operation of torch, so that it can be repeated in another process: its arguments and settings.

A tensor is saved as a view of its storage, so strides, offsets and memory that arguments share stay as they are.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..stream import OpStream
    from .kinds import OpKind

BUILT_IN = ("aten", "prims", "prim", "quantized", "mkldnn", "mkldnn_prepacked", "_c10d_functional", "inductor")
"""Namespaces of operations that come with torch."""

_NAMED = ("dtype", "device", "layout", "memory_format")
"""Types of arguments, all in ``torch``, that are saved by their names."""


class CannotSaveError(Exception):
    """The call cannot be saved, for the reason in its first argument: an obstacle, see recorder/replay."""


def save(torch: Any, stream: OpStream, kind: OpKind, args: Any, kwargs: Any, *, backward: bool) -> None:
    """Write a line ``call`` and the memory of its tensors, or why it cannot be saved."""
    try:
        if kind.random:
            raise CannotSaveError("random", "")
        arguments = _SavedArguments(torch, stream)
        fields = {"args": arguments.encoded(list(args)), "kwargs": arguments.encoded(kwargs)}
        fields.update(modules=_modules(torch, kind.func), libraries=sorted(map(str, torch.ops.loaded_libraries)))
    except CannotSaveError as error:
        stream.write("call", framework="torch", op=kind.name, obstacle=error.args[0], detail=error.args[1])
        return
    stream.write(
        "call", framework="torch", op=kind.name, backward=backward, storages=arguments.storages,
        settings=settings(torch), python=sys.executable, path=list(sys.path), **fields,
    )  # fmt: skip


class Arguments:
    """Encodes arguments as JSON; a subclass numbers the memory of tensors."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._named = tuple(getattr(torch, name) for name in _NAMED)

    def encoded(self, value: Any) -> Any:
        """Return a value: plain ones as they are, others as an object with one key, their kind."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, self._torch.Tensor):
            return {"tensor": self._tensor(value)}
        if isinstance(value, self._named):
            return {type(value).__name__: str(value).rpartition("torch.")[2]}
        if isinstance(value, (list, tuple)):
            return [self.encoded(one) for one in value]
        if isinstance(value, dict):
            return {"dict": [[name, self.encoded(one)] for name, one in value.items()]}
        raise CannotSaveError("argument", type(value).__name__)

    def _tensor(self, tensor: Any) -> dict[str, Any]:
        torch = self._torch
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            raise CannotSaveError("argument", f"{type(tensor).__name__} ({tensor.layout})")
        if tensor.is_quantized:
            raise CannotSaveError("argument", "a quantized tensor")
        bits = [name for name in ("conj", "neg") if getattr(tensor, f"is_{name}")()]
        return {
            "storage": self.storage(tensor),
            "dtype": str(tensor.dtype).partition(".")[2],
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "offset": tensor.storage_offset(),
            "bits": bits,
        }

    def storage(self, tensor: Any) -> int:
        """Return the number of the memory of a tensor."""
        raise NotImplementedError


class _SavedArguments(Arguments):
    """Saves all memory of the tensors. ``storages`` lists the files and the devices."""

    def __init__(self, torch: Any, stream: OpStream) -> None:
        super().__init__(torch)
        self.storages: list[dict[str, Any]] = []
        self._stream = stream
        self._numbers: dict[int, int] = {}
        self._left = int(stream.wanted["call"])

    def storage(self, tensor: Any) -> int:
        """Save the memory of a tensor, and return its number."""
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage._cdata)
        if number is None:
            number = self._numbers[storage._cdata] = len(self.storages)
            size = storage.nbytes()
            self._left -= size
            if self._left < 0:
                raise CannotSaveError("too-large", "")
            host = storage.cpu()
            data = sys.modules["ctypes"].string_at(host.data_ptr(), size) if size else b""
            file = self._stream.save("storage%d" % number, data)
            kind = str(tensor.dtype).partition(".")[2]
            self.storages.append({"file": file, "bytes": size, "device": str(storage.device), "dtype": kind})
        return number


def settings(torch: Any) -> dict[str, Any]:
    """Return the settings that operations are repeated with."""
    return {
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "benchmark": torch.backends.cudnn.benchmark,
        "cudnn": torch.backends.cudnn.deterministic,
        "mkldnn": torch.backends.mkldnn.enabled,
    }


def _modules(torch: Any, func: Any) -> list[str]:
    """Return the modules that define an operation, which a process has to import to have it, [] for torch's own."""
    namespace, _, name = func._schema.name.partition("::")
    if namespace in BUILT_IN:
        return []
    found = list(dict.fromkeys(_definers(torch, namespace, name)))
    if not found or "__main__" in found:
        raise CannotSaveError("library", namespace)
    return found


def _definers(torch: Any, namespace: str, name: str) -> Iterator[str]:
    custom = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", {}).get(f"{namespace}::{name}")
    if custom is not None:
        yield custom._init_fn.__module__
        return
    for module, found in list(sys.modules.items()):
        held = list(vars(found).values()) if hasattr(found, "__dict__") else []
        if any(type(one) is torch.library.Library and one.ns == namespace for one in held):
            yield module
    if namespace in sys.modules:
        yield namespace
