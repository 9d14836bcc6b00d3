"""Make a saved call of torch again."""

from __future__ import annotations

import importlib
import os
import random
import sys

from ..frameworks.torch.reader import TorchReader
from ..training import digest

# Decode the call of an operation of torch that was saved, and make it on given memory.


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
        places = [index for index, name in enumerate(self._names) if name in self._changed]
        self._written = set(_used([self._args[index] for index in places if index < len(self._args)]))
        self._written |= set(_used([value for name, value in self._kwargs["dict"] if name in self._changed]))

    def made(self, memory: Sequence[Any], leaves: list[Any] | None = None) -> tuple[Any, list[Any]]:
        """Make the call on copies of the arguments that it writes to; return its result, and these arguments.

        ``memory`` has a tensor of bytes for each storage. If ``leaves`` are collected, floating-point tensors are
        leaves, or copies of them.
        """
        storages = [one.clone() if index in self._written else one for index, one in enumerate(memory)]
        args = self._value(self._args, storages, leaves)
        kwargs = self._value(self._kwargs, storages, leaves)
        result = self._func(*args, **kwargs)
        arguments = {**dict(zip(self._names, args)), **kwargs}
        return result, [arguments.get(name) for name in self._changed]

    def inputs(self, memory: Sequence[Any]) -> list[Any]:
        """Return the arguments."""
        return [self._value(self._args, memory, None), self._value(self._kwargs, memory, None)]

    def _value(self, value: Any, storages: Sequence[Any], leaves: list[Any] | None) -> Any:
        torch = self._torch
        if isinstance(value, list):
            return [self._value(one, storages, leaves) for one in value]
        if not isinstance(value, dict):
            return value
        ((kind, payload),) = value.items()
        if kind == "tensor":
            return self._tensor(payload, storages, leaves)
        if kind == "float":
            return float.fromhex(payload)
        if kind == "complex":
            return complex(*map(float.fromhex, payload))
        if kind == "dict":
            return {name: self._value(one, storages, leaves) for name, one in payload}
        return torch.device(payload) if kind == "device" else getattr(torch, payload)

    def _tensor(self, layout: dict[str, Any], storages: Sequence[Any], leaves: list[Any] | None) -> Any:
        torch, number = self._torch, layout["storage"]
        flat, dtype = storages[number], getattr(torch, layout["dtype"])
        tensor = torch.empty(0, dtype=dtype, device=flat.device)
        tensor.set_(flat.untyped_storage(), layout["offset"], layout["shape"], layout["stride"])
        for bit in layout["bits"]:
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


# A call of an operation of torch that was saved, made again.


_BLOCKS = 4
"""Blocks of the size of each output that are filled on a device whose memory glibc does not allocate."""


class Call:
    """Makes the call again, on copies of the arguments that it writes to."""

    def __init__(self, call: dict[str, Any], folder: str, condition: dict[str, Any]) -> None:
        torch = self._torch = importlib.import_module("torch")
        settings = call["settings"]
        settle(torch, settings, condition["threads"] or settings["threads"])
        if condition["deterministic"]:
            torch.use_deterministic_algorithms(True)
        for library in call["libraries"]:
            torch.ops.load_library(library)
        for module in call["modules"]:
            importlib.import_module(module)
        self._call, self._reader, self._place = call, TorchReader(torch), condition["place"]
        self._saved = SavedCall(torch, call)
        self._storages = [self._loaded(os.path.join(folder, one["file"]), one) for one in call["storages"]]
        self._sizes: list[tuple[int, Any]] = []
        self._upstream: dict[int, Any] = {}
        self.threads = int(torch.get_num_threads())
        self.may_differentiate = not call["backward"]

    def _loaded(self, path: str, storage: dict[str, Any]) -> Any:
        torch = self._torch
        with open(path, "rb") as file:
            data = bytearray(file.read())
        flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        return flat.to(storage["device"], copy=True)  # memory of torch, which is aligned as in the training

    def _made(self, leaves: list[Any] | None = None) -> list[Any]:
        """Make the call, and return the tensors that it returned, then those that it wrote to."""
        torch = self._torch
        random.seed(0)
        torch.manual_seed(0)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(0)
        tensors = [*_tensors(self._saved.made(self._storages, leaves), torch.Tensor)]
        self._sizes = [(one.nbytes, one.device) for one in tensors if one.device.type != "cpu"]
        return list({id(one): one for one in tensors}.values())

    def own(self) -> str:
        """Make the call, and return the digest of the result at the place where two runs differed."""
        with self._torch.no_grad():
            tensors = self._made()
        return self._digest(tensors[self._place : self._place + 1] or tensors)

    def gradient(self) -> str | None:
        """Make the call and its backward pass, and return the digest of the gradients, None if it has none."""
        leaves: list[Any] = []
        with self._torch.enable_grad():
            try:
                outs = [one for one in self._made(leaves) if one.requires_grad]
            except (NotImplementedError, RuntimeError):
                return None
            if not outs:
                return None
            upstream = [self._given(index, one) for index, one in enumerate(outs)]
            gradients = self._torch.autograd.grad(outs, leaves, upstream, allow_unused=True)
        return self._digest([one for one in gradients if one is not None])

    def _given(self, index: int, out: Any) -> Any:
        """Return a gradient of an output: the same random numbers each time, because sums of ones do not round."""
        torch = self._torch
        if index not in self._upstream:
            generator = torch.Generator().manual_seed(index)
            gradient = torch.randn(out.shape, generator=generator, dtype=torch.float64)
            self._upstream[index] = gradient.to(out.device, out.dtype)
        return self._upstream[index]

    def _digest(self, tensors: list[Any]) -> str:
        with self._reader.undisturbed():
            return digest.of_parts(self._reader.parts(tensors))

    def fill(self, byte: int) -> None:
        """Fill memory of the sizes of the last results on devices that have an allocator of their own."""
        for size, device in self._sizes:
            blocks = [self._torch.empty(size, dtype=self._torch.uint8, device=device) for _ in range(_BLOCKS)]
            for block in blocks:
                block.fill_(byte)


def _tensors(value: Any, tensor: type) -> Iterator[Any]:
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one, tensor)
