"""Digests the memory of arrays and tensors, with no operation of torch: no mode, gradient or trace notices."""

from __future__ import annotations

import ctypes
import sys

from ...training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_MOST_BYTES = 2**26
"""Digested of one array."""

_MOST_SORTED = 2**18
_ARRAYS = {("numpy", "ndarray"), ("numpy", "memmap"), ("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}
_WORDS = (1, 2, 4, 8)


def is_array(value: Any) -> bool:
    """Whether a value is an array or a tensor itself, and of no class that may have its own ways."""
    kind = type(value)
    return (kind.__module__, kind.__name__) in _ARRAYS


class MemoryDigest:
    """Digests for one thread: the buffer that this needs is nobody else's."""

    def __init__(self) -> None:
        self._digest: Any = None

    def told(self, value: Any) -> tuple[str, str]:
        """Return the digests of an array, in its order and in none; of one that cannot be read, its type."""
        kind = type(value).__module__ + "." + type(value).__name__
        numpy = sys.modules.get("numpy")
        try:
            read = _of_tensor(value, numpy) if type(value).__module__.startswith("torch") else _of_array(value)
            if read is None or numpy is None:
                return kind, ""
            if self._digest is None:
                self._digest = digest.NumpyDigest(numpy)
            dtype, array = read
            told = "%s:%s[%s]" % (kind, dtype, ",".join([str(size) for size in array.shape]))
            words, loose = self._words(array, numpy)
        except Exception:  # such as one inside a transform, which has no memory of its own
            return kind, ""
        return told + words, loose

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
    # Under torch.jit.trace even the shape of a tensor would be recorded as an operation.
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
        raise ValueError("the memory of this tensor was taken from it")
    return numpy.ndarray(shape, kind, buffer=(ctypes.c_ubyte * span).from_address(start), strides=strides)
