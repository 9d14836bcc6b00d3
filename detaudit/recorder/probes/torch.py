"""Record torch tensors on their device, and their gradients through hooks that do not change them."""

from __future__ import annotations

import sys
import weakref

from ..frameworks.torch.reader import TorchReader
from ..training import digest
from ..training.compilers import compiling, outside_graphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .log import ProbeLog


def takes(torch: Any, value: Any) -> bool:
    """Return whether a value is a tensor of torch."""
    return isinstance(value, getattr(torch, "Tensor", ()))


class Probes:
    """Records tensors, and adds a hook to each one that may get a gradient."""

    def __init__(self, torch: Any, log: ProbeLog) -> None:
        self._torch, self._log = torch, log
        self._reader = TorchReader(torch)
        self._on_leaves: dict[tuple[int, str], tuple[weakref.ref[Any], Any]] = {}

    def in_graph(self) -> bool:
        """Return False: what is traced is refused."""
        return False

    def monitor(self, tensor: Any, name: str) -> Any:
        """Record a tensor, and its gradient later. Return the tensor.

        Raises RuntimeError if it has no values: on the meta device, in a trace, or while a CUDA graph is captured.
        """
        self._refuse_unreadable(tensor)
        self.note(tensor, name, gradient=False)
        if tensor.requires_grad:
            self._watch_gradient(tensor, name)
        return tensor

    def gradient(self, tensor: Any, name: str) -> None:
        """Record a gradient that the script passes."""
        self.note(tensor, name, gradient=True)

    def _refuse_unreadable(self, tensor: Any) -> None:
        torch = self._torch
        if tensor.is_meta:
            raise RuntimeError("a tensor on the meta device has no values")
        fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", ())
        if torch._C._get_tracing_state() is not None or compiling(torch)() or isinstance(tensor, fake):
            raise RuntimeError("cannot record while torch traces a function, as torch.jit.trace and torch.export do")
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            raise RuntimeError("cannot record while a CUDA graph is captured")

    def note(self, tensor: Any, name: str, *, gradient: bool) -> None:
        """Record a tensor as a value or as a gradient."""
        with self._log.lock, self._reader.undisturbed():
            parts = self._reader.parts([tensor])
            value = repr(self._reader.plain(tensor).item()) if tensor.numel() == 1 else None
            self._log.note(name, digest.of_parts(parts), value, gradient=gradient, after_loss=gradient)

    def _watch_gradient(self, tensor: Any, name: str) -> None:
        def record(gradient: Any) -> None:
            try:
                if not self._log.full:
                    self.note(gradient, name, gradient=True)
            except Exception as error:
                self._log.trouble(f"the gradient of {name!r}", error)

        record.__torch_unserializable__ = True  # type: ignore[attr-defined]  # otherwise torch.save would warn
        outside_graphs(record)
        if not tensor.is_leaf:
            tensor.register_hook(record)
            return
        # A parameter that is monitored at every step would get one more hook each time.
        key = (id(tensor), name)
        if key in self._on_leaves:
            self._on_leaves[key][1].remove()
        gone = weakref.ref(tensor, lambda _: self._on_leaves.pop(key, None))
        self._on_leaves[key] = (gone, tensor.register_hook(record))
