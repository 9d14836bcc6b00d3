"""Prepare the operations of torch to be repeated, forward and backward."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import zlib

from ..parts import Parts, flat
from . import database
from .enlarge import enlarged, grown, instances, mapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

IN_PLACE = "_"
"""At the end of the name of an operation that works in place."""


class Case:
    """A sample of an operation, enlarged, with its inputs on the device."""

    def __init__(self, torch: Any, item: tuple[str, str], sample: int, kinds: Any, call: Any, arguments: Any) -> None:
        self._torch, self._kinds, self._call, self._arguments = torch, kinds, call, arguments
        self.op, self.dtype, self.sample = *item, sample
        self.inputs, self.shapes = "", ""
        self._changes = False

    def enlarge(self, size: list[int] | None, known: bool) -> None:
        """Enlarge the inputs, as before if that is ``known``."""
        seed = zlib.crc32(("%s|%s|%d" % (self.op, self.dtype, self.sample)).encode())
        with self._torch.no_grad():
            self.size: Any = size if known else enlarged(self._torch, self._on_copies, self._arguments, seed)
            if self.size is not None:
                self._arguments = grown(self._torch, self._arguments, self.size[0], self.size[1], seed)
        tensors = instances(self._arguments, self._torch.Tensor)
        self.inputs = parts(self._torch, self._arguments).digest()
        self._changes = self._changes_inputs()
        self.shapes = ", ".join("x".join(map(str, tensor.shape)) or "scalar" for tensor in tensors)

    def _on_copies(self, arguments: Any) -> Any:
        return self._call(mapped(arguments, lambda tensor: tensor.clone(), self._torch.Tensor))

    def _changes_inputs(self) -> bool:
        """Return whether the operation changes its inputs, as an embedding with ``max_norm`` does, and restore them."""
        kept = mapped(self._arguments, lambda tensor: tensor.clone(), self._torch.Tensor)
        with contextlib.suppress(Exception), self._torch.no_grad():  # what it raises, it raises again
            self._call(self._arguments)
        if parts(self._torch, self._arguments).digest() == self.inputs:
            return False
        self._arguments = kept
        return True

    def _given(self) -> Any:
        """Return the inputs for one repetition: copies if the operation changes them."""
        if not self._changes:
            return self._arguments
        return mapped(self._arguments, lambda tensor: tensor.clone(), self._torch.Tensor)

    def directions(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield what to repeat: the operation, and its backward pass if it has one."""
        yield "forward", self._forward
        if (backward := self._backward()) is not None:
            yield "backward", backward

    def _forward(self) -> Any:
        seed(self._torch)
        with self._torch.no_grad():
            return self._call(self._given())

    def _backward(self) -> Callable[[], Any] | None:
        """Return what repeats the backward pass of one forward pass, None if there is nothing to differentiate."""
        torch = self._torch
        if getattr(torch, self.dtype) not in self._kinds:
            return None
        leaves: list[Any] = []

        def leaf(tensor: Any) -> Any:
            if not (tensor.is_floating_point() or tensor.is_complex()):
                return tensor
            leaves.append(tensor.detach().requires_grad_())
            return leaves[-1]

        try:
            seed(torch)
            result = self._call(mapped(self._given(), leaf, torch.Tensor))
            outputs = [tensor for tensor in instances(result, torch.Tensor) if tensor.requires_grad]
            outputs = [tensor for tensor in outputs if tensor.layout is torch.strided]
            gradients = [torch.randn_like(tensor) for tensor in outputs]
        except Exception:  # many operations refuse to be differentiated for some of their inputs
            return None
        if not outputs:
            return None

        def backward() -> Any:
            return torch.autograd.grad(outputs, leaves, gradients, retain_graph=True, allow_unused=True)

        try:
            backward()
        except RuntimeError:
            return None
        return backward


class Scanned:
    """torch on one device."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch, self._device = torch, device
        self._database = database.load()
        self.version: str = torch.__version__
        self.threads: int = torch.get_num_threads()

    def items(self, dtypes: Sequence[str]) -> Iterator[list[str]]:
        """Yield each operation with each type that it supports here."""
        for name, entry in self._database.items():
            for dtype in dtypes:
                if entry.supports_dtype(getattr(self._torch, dtype), self._device):
                    yield [name, dtype]
                    if database.in_place(name, entry):
                        yield [name + IN_PLACE, dtype]

    def cases(self, op: str, dtype: str, only: list[int] | None, sizes: dict[str, Any]) -> Iterator[Case]:
        """Yield samples of an operation; ``sizes`` has how an earlier job enlarged them."""
        torch = self._torch
        works_in_place = op not in self._database
        entry = self._database[op[: -len(IN_PLACE)] if works_in_place else op]
        function = entry.inplace_variant if works_in_place else entry.op

        def call(arguments: Any) -> Any:
            first, others, options = arguments
            return function(first.clone() if works_in_place else first, *others, **options)

        differentiable = entry.supports_autograd and not works_in_place
        kinds = entry.supported_backward_dtypes(torch.device(self._device).type) if differentiable else ()
        torch.manual_seed(zlib.crc32(("%s|%s" % (entry.name, dtype)).encode()))
        for number, sample in database.samples(torch, op, entry, getattr(torch, dtype), self._device, only):
            if works_in_place and sample.broadcasts_input:
                continue
            arguments = [sample.input, self._indices(op, list(sample.args)), sample.kwargs]
            case = Case(torch, (op, dtype), number, kinds, call, arguments)
            key = "%s|%s|%d" % (op, dtype, number)
            case.enlarge(sizes.get(key), key in sizes)
            yield case

    def _indices(self, op: str, arguments: Any) -> Any:
        """Return arguments in which the lists of numbers that ``x[[0, 2]]`` takes are tensors, which can grow."""
        if op != "__getitem__":
            return arguments

        def change(value: Any) -> Any:
            if isinstance(value, list) and value and all(type(item) is int for item in value):
                return self._torch.tensor(value, device=self._device)
            return type(value)(change(item) for item in value) if isinstance(value, (list, tuple)) else value

        return change(arguments)

    @contextlib.contextmanager
    def phase(self, threads: int, switch: bool) -> Iterator[None]:
        """Have so many threads, and deterministic algorithms if ``switch``, inside this block."""
        torch = self._torch
        torch.set_num_threads(threads or self.threads)
        torch.use_deterministic_algorithms(switch)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)
            torch.set_num_threads(self.threads)

    def parts(self, result: Any) -> Parts:
        """Return the tensors in a result."""
        return parts(self._torch, result)


def seed(torch: Any) -> None:
    """Seed the generators as torch.manual_seed does, which takes milliseconds on a CPU alone."""
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(0)


def start(device: str, phases: Sequence[Any]) -> Scanned:
    """Import torch, which can change its threads and its switch at any time. Raises what it does without the device."""
    torch = importlib.import_module("torch")
    torch.empty(0, device=device)
    return Scanned(torch, device)


def parts(torch: Any, result: Any) -> Parts:
    """Return the tensors in nested values; a sparse one is its indices and its values."""
    entries: list[Any] = []
    for name, value in flat(result):
        for suffix, tensor in _plain(torch, value):
            if isinstance(tensor, torch.Tensor):
                dtype = str(tensor.dtype).rpartition(".")[2]
                entries.append((name + suffix, dtype, tuple(tensor.shape), _buffer(tensor)))
            else:
                entries.append((name, "", (), repr(tensor).encode()))
    return Parts(entries)


def _plain(torch: Any, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, torch.Tensor) or value.layout is torch.strided:
        yield "", value
    elif value.layout is torch.sparse_coo:
        yield from ((".indices", value._indices()), (".values", value._values()))
    else:
        dense = value.to_sparse_coo()
        yield from ((".indices", dense._indices()), (".values", dense._values()))


def _buffer(tensor: Any) -> Any:
    """Return the bytes of a tensor in C order; the buffer holds the memory."""
    if tensor._is_zerotensor():  # has no memory
        tensor = tensor.new_zeros(tensor.shape)
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    size = tensor.numel() * tensor.element_size()
    if not size:
        return b""
    buffer = (ctypes.c_char * size).from_address(tensor.data_ptr())
    buffer.tensor = tensor
    return buffer
