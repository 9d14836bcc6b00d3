"""Read torch tensors on any device: their digests, sums and values."""

from __future__ import annotations

import contextlib
import sys

from ...training import digest
from ...training.digest import FrameworkReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class _Undisturbed:
    """Disables gradients, modes, transforms and ``__torch_function__``, so that the script does not see what is read.

    It runs at every hook, so it is not a generator, which is slower.
    """

    __slots__ = ("_c", "_enabled", "_modes", "_off", "_transform")

    def __init__(self, c: Any, transform: Callable[[], Any]) -> None:
        self._c, self._transform = c, transform
        self._modes: contextlib.ExitStack | None = None

    def __enter__(self) -> None:
        c = self._c
        self._off = c.DisableTorchFunction()
        self._off.__enter__()
        self._enabled = c.is_grad_enabled()
        if self._enabled:
            c._set_grad_enabled(False)
        transformed = self._transform() is not None
        if transformed or c._len_torch_dispatch_stack():
            self._modes = contextlib.ExitStack()
            self._modes.enter_context(sys.modules["torch.utils._python_dispatch"]._disable_current_modes())
            if transformed:
                self._modes.enter_context(
                    sys.modules["torch._functorch.pyfunctorch"].temporarily_clear_interpreter_stack()
                )

    def __exit__(self, *_: object) -> None:
        if self._modes is not None:
            self._modes.close()
        if self._enabled:
            self._c._set_grad_enabled(True)
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
        self._functorch: Any = getattr(torch._C, "_functorch", None)
        self.transform = getattr(self._functorch, "peek_interpreter_stack", lambda: None)
        self._wrapped: Callable[[Any], bool] = getattr(self._functorch, "is_functorch_wrapped_tensor", lambda _: False)
        self._usual, self._strided = (torch.Tensor, torch.nn.Parameter), torch.strided
        self._string_at = sys.modules["ctypes"].string_at  # torch imports ctypes

    def may_read(self) -> bool:
        """Return whether no CUDA graph is being captured, which must not contain our reading."""
        cuda = self._torch.cuda
        return not (cuda.is_initialized() and cuda.is_current_stream_capturing())

    def undisturbed(self) -> _Undisturbed:
        """Return a context for reading, in which no gradient, mode or transform of the script is active."""
        return _Undisturbed(self._torch._C, self.transform)

    def gradients_in_progress(self) -> int:
        """Return how many of the function transforms in progress compute gradients, as torch.func.grad does."""
        if self.transform() is None:
            return 0
        levels = self._functorch.get_interpreter_stack()
        return sum([level.key() == self._functorch.TransformType.Grad for level in levels])

    def unwrapped(self, tensor: Any) -> Any:
        """Return the tensor that function transforms wrapped, the tensor itself if none did."""
        while self._wrapped(tensor):
            tensor = self._functorch.get_unwrapped(tensor)
        return tensor

    def plain(self, tensor: Any) -> Any:
        """Return the plain tensor: unwrapped, detached, and of a distributed one this rank's shard."""
        tensor = self.unwrapped(tensor).detach()
        if type(tensor) is not self._torch.Tensor and hasattr(tensor, "to_local"):
            tensor = tensor.to_local()
        return tensor

    def address(self, tensor: Any) -> int:
        """Return where the elements of a usual tensor begin, on its device; 0 for any other kind, or without memory."""
        if type(tensor) not in self._usual or self._wrapped(tensor) or tensor.layout is not self._strided:
            return 0
        start: int = tensor.data_ptr()
        return start

    def parts(self, tensors: Sequence[Any]) -> list[digest.Part]:
        """Return the part of each dense or sparse tensor in a digest, named by its index."""
        small = self._small
        parts = [small(str(index), tensor) for index, tensor in enumerate(tensors)]
        if None not in parts:
            return parts  # type: ignore[return-value]
        others = [index for index, part in enumerate(parts) if part is None]
        plain = [self.plain(tensors[index]) for index in others]
        for index, tensor, word in zip(others, plain, self._words(plain)):
            parts[index] = str(index), self._kind(tensor), tuple(tensor.shape), word
        return parts  # type: ignore[return-value]

    def _small(self, name: str, tensor: Any) -> digest.Part | None:
        """Return the part of a small tensor of the most usual kind, in a fifth of the time, and None for others."""
        if type(tensor) not in self._usual or self._wrapped(tensor) or tensor.layout is not self._strided:
            return None
        if not tensor.is_cpu or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            return None
        start, size, dtype = tensor.data_ptr(), tensor.nbytes, tensor.dtype
        if not start or size > digest.SMALL:
            return None
        words = digest.small(self._string_at(start, size))
        return name, self._kinds.get(dtype) or self._kind(tensor), tuple(tensor.shape), words

    def _words(self, plain: Sequence[Any]) -> list[int]:
        words = [self._sparse(t) if t.layout != self._torch.strided else self._host_words(t) for t in plain]
        unread_indices = [index for index, word in enumerate(words) if word is None]
        if unread_indices:
            for index, word in zip(
                unread_indices, self._digest.words([_dense(plain[index]) for index in unread_indices])
            ):
                words[index] = word
        return [word or 0 for word in words]

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
            return digest.small(self._string_at(start, size))
        return on_host.words(sys.modules["numpy"].asarray(_Bytes(start, size)))

    def generator_states(self) -> bytes:
        """Return the states of the generators of all devices, which are short byte tensors on the CPU."""
        torch = self._torch
        states = [torch.default_generator.get_state()]
        if torch.cuda.is_initialized():  # is_available() could break CUDA in a child that is forked later
            states += torch.cuda.get_rng_state_all()
        return b"".join([self._string_at(one.data_ptr(), one.numel()) for one in states])

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
        if copy:
            return (tensor if self.address(tensor) else self.plain(tensor)).clone()
        return self.plain(tensor) if tensor.requires_grad else None

    def device(self, tensor: Any) -> str:
        """Return the device of a tensor, such as ``cuda:0``."""
        return str(tensor.device)

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real tensor with one element, None for others."""
        return float(tensor) if tensor.numel() == 1 and not tensor.is_complex() else None
