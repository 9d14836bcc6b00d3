"""Record the values of probes, each with the reader for its library."""

from __future__ import annotations

import importlib
import sys

from . import log
from .log import ProbeLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..process.recorder import Recorder
    from .tensorflow import TensorFlowProbes
    from .torch import TorchProbes


class ProbeWatcher:
    """Records values of any library. A failure is recorded too, and never reaches the script."""

    def __init__(self, recorder: Recorder) -> None:
        self.log = ProbeLog(recorder)
        self._arrays = log.NumpyReader()
        self._torch: TorchProbes | None = None
        self._tensorflow: TensorFlowProbes | None = None

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function`` and record its exception once; it never reaches the script."""
        try:
            function()
        except Exception as error:
            self.log.trouble(where, error)

    def visit(self, value: Any, name: str) -> Any:
        """Record one part of a structure, and return it or its replacement."""
        try:
            return self._visit(value, name)
        except Exception as error:
            self.log.trouble(f"detaudit.monitor of {name!r}", error)
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
        """Record a gradient that the script passes."""
        torch, tensorflow = self._readers(value)
        if torch is not None:
            torch.note(value, name, gradient=True)
        elif tensorflow is not None:
            tensorflow.note(value, name, gradient=True, after_loss=True)
        else:
            self._note(value, name, gradient=True)

    def graph_of(self, values_: list[Any]) -> TensorFlowProbes | None:
        """Return the probes that can add to the TensorFlow graph these values belong to, None if there is none."""
        readers = [self._readers(value)[1] for value in values_]
        return next((reader for reader in readers if reader is not None and reader.in_graph()), None)

    def _readers(self, value: Any) -> tuple[TorchProbes | None, TensorFlowProbes | None]:
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
            if self._torch is None:
                self._torch = importlib.import_module(".torch", __package__).TorchProbes(torch, self.log)
            return self._torch, None
        tf: Any = sys.modules.get("tensorflow")
        if tf is not None and hasattr(tf, "is_tensor") and tf.is_tensor(value):
            if self._tensorflow is None:
                self._tensorflow = importlib.import_module(".tensorflow", __package__).TensorFlowProbes(tf, self.log)
            return None, self._tensorflow
        return None, None

    def _note(self, value: Any, name: str, *, gradient: bool) -> None:
        with self.log.lock:
            value_digest, text = self._read(value)
            self.log.note(name, value_digest, text, gradient=gradient, after_loss=gradient)

    def _read(self, value: Any) -> tuple[str, str | None]:
        plain = log.digest_plain(value)
        if plain is not None:
            return plain, log.shown(value)
        if not hasattr(value, "__array__"):
            raise TypeError(f"a probe accepts numbers, strings, tensors and arrays, not {type(value).__name__}")
        importlib.import_module("numpy")
        return self._arrays.read([value])
