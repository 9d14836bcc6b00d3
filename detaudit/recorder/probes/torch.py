"""Records torch tensors where they live, and their gradients through hooks that change nothing."""

from __future__ import annotations

import sys
import weakref

from ..adapters.torch.compiling import compiling
from ..adapters.torch.reader import TensorReader
from ..training import digest
from .compilers import outside_of_graphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .notebook import Notebook


class TorchProbes:
    """Reads tensors, and puts a hook on each through which a gradient may come back."""

    def __init__(self, torch: Any, notebook: Notebook) -> None:
        self._torch, self._notebook = torch, notebook
        self._reader = TensorReader(torch)
        self._on_leaves: dict[tuple[int, str], tuple[weakref.ref[Any], Any]] = {}

    def monitor(self, tensor: Any, name: str) -> None:
        """Record a tensor, and the gradient that comes back to it.

        Raises RuntimeError where it has no values: on the meta device, in a trace, in the capture of a CUDA graph.
        """
        self._refuse_what_cannot_be_read(tensor)
        self.note(tensor, name, gradient=False)
        if tensor.requires_grad:
            self._watch_gradient(tensor, name)

    def _refuse_what_cannot_be_read(self, tensor: Any) -> None:
        torch = self._torch
        if tensor.is_meta:
            raise RuntimeError("a tensor on the meta device has no values")
        fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", ())
        if torch._C._get_tracing_state() is not None or compiling(torch)() or isinstance(tensor, fake):
            raise RuntimeError("nothing is recorded while torch only traces, as for torch.jit.trace and torch.export")
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            raise RuntimeError("nothing is recorded while a CUDA graph is captured")

    def note(self, tensor: Any, name: str, *, gradient: bool) -> None:
        """Record a tensor as a value or as a gradient."""
        with self._notebook.lock, self._reader.undisturbed():
            parts = self._reader.parts([tensor])
            value = repr(self._reader.plain(tensor).item()) if tensor.numel() == 1 else None
            self._notebook.note(name, digest.of_parts(parts), value, gradient=gradient, after_loss=gradient)

    def _watch_gradient(self, tensor: Any, name: str) -> None:
        def see(gradient: Any) -> None:
            try:
                if not self._notebook.full:
                    self.note(gradient, name, gradient=True)
            except Exception as error:
                self._notebook.complain(f"the gradient of {name!r}", error)

        see.__torch_unserializable__ = True  # type: ignore[attr-defined]  # else torch.save would warn of it
        outside_of_graphs(see)
        if not tensor.is_leaf:
            tensor.register_hook(see)
            return
        # A parameter that is monitored at every step would gather a hook at each.
        key = (id(tensor), name)
        if key in self._on_leaves:
            self._on_leaves[key][1].remove()
        gone = weakref.ref(tensor, lambda _: self._on_leaves.pop(key, None))
        self._on_leaves[key] = (gone, tensor.register_hook(see))
