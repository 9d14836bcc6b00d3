"""Digest the memory of arrays and tensors without running an operation of torch, which a mode or a trace would see."""

from __future__ import annotations

import ctypes
import sys

from ...process import handlers
from ...training import digest

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

    def describe(self, value: Any) -> tuple[str, str]:
        """Return two digests of an array, the second ignoring order; its type and ``""`` if it cannot be read."""
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
            words, bag = self._words(array, numpy)
        except Exception as error:  # such as for a tensor inside a transform, which has no memory
            handlers.pass_on(error)
            return kind, ""
        return described + words, bag

    def _words(self, array: Any, numpy: Any) -> tuple[str, str]:
        if array.nbytes > _MOST_BYTES:
            if not array.flags.c_contiguous:
                return "", ""
            array = array.reshape(-1)[: _MOST_BYTES // array.itemsize]
        flat = numpy.ascontiguousarray(array).reshape(-1)
        words = ":%016x" % self._digest.words(flat)
        if not 1 < flat.size <= _MOST_SORTED or flat.itemsize not in _WORDS:
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
