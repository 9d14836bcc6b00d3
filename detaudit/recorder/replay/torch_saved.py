"""Decode the call of an operation of torch that was saved, and make it on given memory."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


def settle(torch: Any, settings: dict[str, Any], threads: int) -> None:
    """Apply the settings that a call was made with, but so many threads."""
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(settings["precision"])
    torch.backends.cudnn.benchmark = settings["benchmark"]
    torch.backends.cudnn.deterministic = settings["cudnn"]
    torch.backends.mkldnn.enabled = settings["mkldnn"]
    if settings["deterministic"]:
        torch.use_deterministic_algorithms(True, warn_only=settings["warn_only"])


class SavedCall:
    """A call with ``op``, ``args`` and ``kwargs``; see the package."""

    def __init__(self, torch: Any, call: dict[str, Any]) -> None:
        self._torch, self._args, self._kwargs = torch, call["args"], call["kwargs"]
        namespace, name, overload = call["op"].split(".")
        self._func = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        schema = self._func._schema.arguments
        self._names = [one.name for one in schema]
        self._changed = [one.name for one in schema if one.alias_info is not None and one.alias_info.is_write]
        places = [place for place, name in enumerate(self._names) if name in self._changed]
        self._written = set(_used([self._args[place] for place in places if place < len(self._args)]))
        self._written |= set(_used([value for name, value in self._kwargs["dict"] if name in self._changed]))

    def made(self, memory: Sequence[Any], leaves: list[Any] | None = None) -> tuple[Any, list[Any]]:
        """Make the call on copies of the arguments that it writes to; return its result, and these arguments.

        ``memory`` has a tensor of bytes for each storage. If ``leaves`` are collected, floating-point tensors are
        leaves, or copies of them.
        """
        storages = [one.clone() if place in self._written else one for place, one in enumerate(memory)]
        args = self._value(self._args, storages, leaves)
        kwargs = self._value(self._kwargs, storages, leaves)
        result = self._func(*args, **kwargs)
        given = {**dict(zip(self._names, args)), **kwargs}
        return result, [given.get(name) for name in self._changed]

    def inputs(self, memory: Sequence[Any]) -> list[Any]:
        """Return the arguments."""
        return [self._value(self._args, memory, None), self._value(self._kwargs, memory, None)]

    def _value(self, value: Any, storages: Sequence[Any], leaves: list[Any] | None) -> Any:
        torch = self._torch
        if isinstance(value, list):
            return [self._value(one, storages, leaves) for one in value]
        if not isinstance(value, dict):
            return value
        ((kind, held),) = value.items()
        if kind == "tensor":
            return self._tensor(held, storages, leaves)
        if kind == "float":
            return float.fromhex(held)
        if kind == "complex":
            return complex(*map(float.fromhex, held))
        if kind == "dict":
            return {name: self._value(one, storages, leaves) for name, one in held}
        return torch.device(held) if kind == "device" else getattr(torch, held)

    def _tensor(self, held: dict[str, Any], storages: Sequence[Any], leaves: list[Any] | None) -> Any:
        torch, number = self._torch, held["storage"]
        flat, dtype = storages[number], getattr(torch, held["dtype"])
        tensor = torch.empty(0, dtype=dtype, device=flat.device)
        tensor.set_(flat.untyped_storage(), held["offset"], held["shape"], held["stride"])
        for bit in held["bits"]:
            tensor = torch.conj(tensor) if bit == "conj" else torch._neg_view(tensor)
        if leaves is None or not (dtype.is_floating_point or dtype.is_complex):
            return tensor
        leaves.append(tensor.requires_grad_())
        return tensor.clone() if number in self._written else tensor


def _used(value: Any) -> Iterator[int]:
    """Yield the numbers of the storages of the tensors in a value."""
    if isinstance(value, list):
        for one in value:
            yield from _used(one)
    elif isinstance(value, dict) and "tensor" in value:
        yield value["tensor"]["storage"]
