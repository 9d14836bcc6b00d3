"""Find the losses that the script computed, before a GradScaler scaled them for the backward pass."""

from __future__ import annotations

import functools
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...process.sink import Sink
    from .steps import ThreadSteps


class ScaledLosses:
    """The losses that were scaled last, by thread."""

    def __init__(self, torch: Any, sink: Sink, threads: ThreadSteps) -> None:
        self._torch, self._sink, self._threads = torch, sink, threads

    def watch(self, scaler: Any) -> None:
        """Wrap the method of a class of scalers that scales a loss."""
        scale = scaler.scale

        @functools.wraps(scale)
        def scale_(scaler_: Any, outputs: Any) -> Any:
            scaled = scale(scaler_, outputs)
            self._sink.guarded("scale", lambda: self._keep(scaled, outputs))
            return scaled

        scaler.scale = scale_

    def _keep(self, scaled: Any, outputs: Any) -> None:
        if isinstance(outputs, self._torch.Tensor):
            self._threads.now().unscaled = (weakref.ref(scaled), outputs.detach())

    def unscaled(self, output: Any) -> Any:
        """Return the loss from which a scaled loss was computed, or the loss itself if it was not scaled."""
        scaled, loss = self._threads.now().unscaled or (lambda: None, output)
        return loss if scaled() is output else output
