"""Reads torch tensors: their digests, sums and values, wherever they live."""

from __future__ import annotations

import contextlib
import sys

from .. import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class TensorReader:
    """Reads tensors where they live, outside the user's dispatch modes and functorch levels."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._digest = digest.TorchDigest(torch)
        self._on_host: digest.NumpyDigest | None = None
        self._asked_numpy = False
        self._functorch = getattr(torch._C, "_functorch", None)

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Read as if no gradient, mode or transform of the script were active."""
        c = self._torch._C
        enabled = c.is_grad_enabled()
        c._set_grad_enabled(False)
        try:
            if c._len_torch_dispatch_stack() or (self._functorch and self._functorch.peek_interpreter_stack()):
                with self._outside_of_modes():
                    yield
            else:
                yield
        finally:
            c._set_grad_enabled(enabled)

    @contextlib.contextmanager
    def _outside_of_modes(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(sys.modules["torch.utils._python_dispatch"]._disable_current_modes())
            if self._functorch is not None and self._functorch.peek_interpreter_stack() is not None:
                pyfunctorch = sys.modules["torch._functorch.pyfunctorch"]
                stack.enter_context(pyfunctorch.temporarily_clear_interpreter_stack())
            yield

    def plain(self, tensor: Any) -> Any:
        """Return the tensor's own values: unwrapped, detached, this rank's shard of a distributed one."""
        if self._functorch is not None:
            while self._functorch.is_functorch_wrapped_tensor(tensor):
                tensor = self._functorch.get_unwrapped(tensor)
        tensor = tensor.detach()
        return tensor.to_local() if hasattr(tensor, "to_local") else tensor

    def part(self, name: str, tensor: Any) -> tuple[str, str, tuple[int, ...], int]:
        """Return (name, dtype, shape, word digest) of a dense or sparse tensor."""
        tensor = self.plain(tensor)
        if tensor.layout != self._torch.strided:
            tensor = tensor.coalesce() if tensor.layout == self._torch.sparse_coo else tensor.to_sparse_coo()
            indices, values = tensor.indices(), tensor.values()
            mixed = f"{self._words(indices):016x}{self._words(values):016x}"
            return name, f"sparse {tensor.dtype}", tuple(tensor.shape), int(digest.of_bytes(mixed.encode())[:16], 16)
        return name, str(tensor.dtype), tuple(tensor.shape), self._words(tensor)

    def _words(self, tensor: Any) -> int:
        tensor = tensor.resolve_conj().resolve_neg().contiguous()
        numpy_digest = self._numpy() if tensor.device.type == "cpu" else None
        if numpy_digest is not None:
            return numpy_digest.words(tensor.reshape(-1).view(self._torch.uint8).numpy())
        return self._digest.words(tensor)

    def raw(self, state: Any) -> bytes:
        """Return the bytes of a generator's state, a short tensor of bytes on the CPU."""
        return bytes(state.numpy()) if self._numpy() is not None else bytes(state.tolist())

    def _numpy(self) -> digest.NumpyDigest | None:
        # Faster on a CPU. torch imports NumPy itself, so where it is missing here, it is not installed.
        if not self._asked_numpy and "numpy" in sys.modules:
            self._asked_numpy = True
            with contextlib.suppress(RuntimeError):  # a torch built against another NumPy
                self._torch.empty(0, dtype=self._torch.uint8).numpy()
                self._on_host = digest.NumpyDigest(sys.modules["numpy"])
        return self._on_host

    def total(self, tensor: Any) -> float:
        """Return the sum of a tensor's elements in float64."""
        tensor = self.plain(tensor)
        if tensor.layout != self._torch.strided:
            tensor = tensor.to_dense()
        return self._digest.total(tensor)

    def size(self, tensor: Any) -> int:
        """Return the bytes of a tensor's elements."""
        return int(tensor.numel() * tensor.element_size())

    def device(self, tensor: Any) -> str:
        """Return where a tensor lives, such as ``cuda:0``."""
        return str(tensor.device)

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real tensor of one element."""
        return float(tensor) if tensor.numel() == 1 and not tensor.is_complex() else None
