"""Finds for each value that a probe is given who can read it."""

from __future__ import annotations

import importlib
import sys

from . import values
from .notebook import Notebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..process.recorder import Recorder
    from .tensorflow import TensorFlowProbes
    from .torch import TorchProbes


class Watcher:
    """Reads values of any library. What fails is written down, and the script goes on."""

    def __init__(self, recorder: Recorder) -> None:
        self.notebook = Notebook(recorder)
        self._arrays = values.ArrayReader()
        self._torch: TorchProbes | None = None
        self._tensorflow: TensorFlowProbes | None = None

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function``; the host never sees its exception, the trace does, once."""
        try:
            function()
        except Exception as error:
            self.notebook.complain(where, error)

    def visit(self, value: Any, name: str) -> Any:
        """Record one part of a structure, and return what stands for it."""
        try:
            return self._visit(value, name)
        except Exception as error:
            self.notebook.complain(f"detaudit.monitor of {name!r}", error)
            return value

    def _visit(self, value: Any, name: str) -> Any:
        torch, tensorflow = self._readers(value)
        if torch is not None:
            torch.monitor(value, name)
        elif tensorflow is not None:
            return tensorflow.monitor(value, name)
        else:
            self._note(value, name, gradient=False)
        return value

    def gradient(self, value: Any, name: str) -> None:
        """Record a gradient that the script holds."""
        torch, tensorflow = self._readers(value)
        if torch is not None:
            torch.note(value, name, gradient=True)
        elif tensorflow is not None:
            tensorflow.note(value, name, gradient=True, after_loss=True)
        else:
            self._note(value, name, gradient=True)

    def graph_of(self, values_: list[Any]) -> TensorFlowProbes | None:
        """Return who can add to the TensorFlow graph that is being built out of these values, None if none is."""
        readers = [self._readers(value)[1] for value in values_]
        return next((reader for reader in readers if reader is not None and reader.in_graph()), None)

    def _readers(self, value: Any) -> tuple[TorchProbes | None, TensorFlowProbes | None]:
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
            if self._torch is None:
                self._torch = importlib.import_module(".torch", __package__).TorchProbes(torch, self.notebook)
            return self._torch, None
        tf: Any = sys.modules.get("tensorflow")
        if tf is not None and hasattr(tf, "is_tensor") and tf.is_tensor(value):
            if self._tensorflow is None:
                self._tensorflow = importlib.import_module(".tensorflow", __package__).TensorFlowProbes(
                    tf, self.notebook
                )
            return None, self._tensorflow
        return None, None

    def _note(self, value: Any, name: str, *, gradient: bool) -> None:
        with self.notebook.lock:
            found, text = self._read(value)
            self.notebook.note(name, found, text, gradient=gradient, after_loss=gradient)

    def _read(self, value: Any) -> tuple[str, str | None]:
        plain = values.of_plain(value)
        if plain is not None:
            return plain, values.shown(value)
        if not hasattr(value, "__array__"):
            raise TypeError(f"a probe takes numbers, strings, tensors and arrays, not {type(value).__name__}")
        importlib.import_module("numpy")
        return self._arrays.read([value])
