"""Read torch tensors on any device: their digests, sums and values."""

from __future__ import annotations

import contextlib
import sys

from ...training import digest
from ...training.reader import FrameworkReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class _Undisturbed:
    """Disables gradients, modes, transforms and ``__torch_function__``, so that the script does not see what is read.

    It runs at every hook, so it is not a generator, which is slower.
    """

    __slots__ = ("_c", "_enabled", "_functorch", "_modes", "_off")

    def __init__(self, c: Any, functorch: Any) -> None:
        self._c, self._functorch = c, functorch
        self._enabled = False
        self._modes: contextlib.ExitStack | None = None

    def __enter__(self) -> None:
        self._off = self._c.DisableTorchFunction()
        self._off.__enter__()
        self._enabled = self._c.is_grad_enabled()
        self._c._set_grad_enabled(False)
        transformed = self._functorch is not None and self._functorch.peek_interpreter_stack() is not None
        if transformed or self._c._len_torch_dispatch_stack():
            self._modes = contextlib.ExitStack()
            self._modes.enter_context(sys.modules["torch.utils._python_dispatch"]._disable_current_modes())
            if transformed:
                self._modes.enter_context(
                    sys.modules["torch._functorch.pyfunctorch"].temporarily_clear_interpreter_stack()
                )

    def __exit__(self, *_: object) -> None:
        if self._modes is not None:
            self._modes.close()
        self._c._set_grad_enabled(self._enabled)
        self._off.__exit__(None, None, None)


def _dense(tensor: Any) -> Any:
    return tensor.resolve_conj().resolve_neg().contiguous()


def _is_freed(tensor: Any) -> bool:
    """Return whether the storage of a tensor was emptied, as FSDP2 does with weights that it will gather again."""
    return not tensor.data_ptr() and tensor.numel() > 0


class _Bytes:
    """Memory that NumPy can read in place. Tensor.numpy() would mark the storage as one that cannot be resized."""

    __slots__ = ("__array_interface__",)

    def __init__(self, start: int, size: int) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (start, True)}


class TorchReader(FrameworkReader):
    """Reads tensors on their device, outside of the user's dispatch modes and functorch levels."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._digest = digest.TorchDigest(torch)
        self._on_host: digest.NumpyDigest | None = None
        self._asked_numpy = False
        self._kinds: dict[Any, str] = {}
        self._functorch = getattr(torch._C, "_functorch", None)

    def may_read(self) -> bool:
        """Return whether no CUDA graph is being captured, which must not contain our reading."""
        cuda = self._torch.cuda
        return not (cuda.is_initialized() and cuda.is_current_stream_capturing())

    def undisturbed(self) -> _Undisturbed:
        """Return a context for reading, in which no gradient, mode or transform of the script is active."""
        return _Undisturbed(self._torch._C, self._functorch)

    def plain(self, tensor: Any) -> Any:
        """Return the plain tensor: unwrapped, detached, and of a distributed one this rank's shard."""
        if self._functorch is not None:
            while self._functorch.is_functorch_wrapped_tensor(tensor):
                tensor = self._functorch.get_unwrapped(tensor)
        tensor = tensor.detach()
        if type(tensor) is not self._torch.Tensor and hasattr(tensor, "to_local"):
            tensor = tensor.to_local()
        return tensor

    def parts(self, tensors: Sequence[Any]) -> list[digest.Part]:
        """Return the part of each dense or sparse tensor in a digest, named by its index."""
        plain = [self.plain(tensor) for tensor in tensors]
        words = [self._sparse(t) if t.layout != self._torch.strided else self._host_words(t) for t in plain]
        elsewhere = [place for place, word in enumerate(words) if word is None]
        if elsewhere:
            for place, word in zip(elsewhere, self._digest.words([_dense(plain[place]) for place in elsewhere])):
                words[place] = word
        return [(str(i), self._kind(t), tuple(t.shape), words[i] or 0) for i, t in enumerate(plain)]

    def _kind(self, tensor: Any) -> str:
        kind = self._kinds.get(tensor.dtype)
        if kind is None:
            kind = self._kinds[tensor.dtype] = str(tensor.dtype)
        return kind if tensor.layout == self._torch.strided else f"sparse {kind}"

    def _sparse(self, tensor: Any) -> int:
        tensor = tensor.coalesce() if tensor.layout == self._torch.sparse_coo else tensor.to_sparse_coo()
        parts = self.parts([tensor.indices(), tensor.values()])
        return int(digest.of_parts(parts)[:16], 16)

    def _host_words(self, tensor: Any) -> int | None:
        """Return the digest of a tensor that NumPy can read in place, 0 without memory, None for others."""
        # A subclass with __torch_dispatch__ may have no memory of its own.
        if type(tensor).__torch_dispatch__ is not self._torch.Tensor.__torch_dispatch__:
            return None
        if _is_freed(tensor):
            return 0
        on_host = self._numpy() if tensor.is_cpu else None
        if on_host is None:
            return None
        tensor = _dense(tensor)
        size, start = tensor.nbytes, tensor.data_ptr()
        if size <= digest.SMALL:
            return digest.small(sys.modules["ctypes"].string_at(start, size))  # torch imports ctypes
        return on_host.words(sys.modules["numpy"].asarray(_Bytes(start, size)))

    def generator_states(self) -> bytes:
        """Return the states of the generators of all devices, which are short byte tensors on the CPU."""
        torch = self._torch
        states = [torch.get_rng_state()]
        if torch.cuda.is_initialized():  # is_available() could break CUDA in a child that is forked later
            states += torch.cuda.get_rng_state_all()
        return b"".join([bytes(one.numpy() if self._numpy() is not None else one.tolist()) for one in states])

    def _numpy(self) -> digest.NumpyDigest | None:
        # NumPy is faster on a CPU. torch imports it, so it is not installed if it is missing in sys.modules.
        if not self._asked_numpy and "numpy" in sys.modules:
            self._asked_numpy = True
            with contextlib.suppress(RuntimeError):  # a torch that was built for a different NumPy
                self._torch.empty(0, dtype=self._torch.uint8).numpy()
                self._on_host = digest.NumpyDigest(sys.modules["numpy"])
        return self._on_host

    def total(self, tensor: Any) -> float:
        """Return the sum of a tensor's elements in float64."""
        tensor = self.plain(tensor)
        if tensor.layout != self._torch.strided:
            tensor = tensor.to_dense()
        if type(tensor) is self._torch.Tensor and _is_freed(tensor):
            return 0.0
        return self._digest.total(tensor)

    def size(self, tensor: Any) -> int:
        """Return the number of bytes of a tensor."""
        return int(tensor.numel() * tensor.element_size())

    def kept(self, tensor: Any, copy: bool) -> Any:
        """Return a copy, or the tensor itself if it has a gradient function: scripts rarely write to those."""
        plain = self.plain(tensor)
        return plain.clone() if copy else plain if tensor.requires_grad else None

    def device(self, tensor: Any) -> str:
        """Return the device of a tensor, such as ``cuda:0``."""
        return str(tensor.device)

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real tensor with one element, None for others."""
        return float(tensor) if tensor.numel() == 1 and not tensor.is_complex() else None
