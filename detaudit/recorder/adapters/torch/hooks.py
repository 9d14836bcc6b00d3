"""Make hooks: functions of the recorder that torch or the script calls, and that neither notices."""

from __future__ import annotations

from ...process.headroom import headroom
from .compiling import compiling, never_compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...process.sink import Sink
    from ...training.steps import Training
    from .reader import TorchReader


class Hooks:
    """Makes hooks that record their failures, and that torch.compile skips."""

    def __init__(self, torch: Any, sink: Sink, training: Training, reader: TorchReader) -> None:
        self._torch, self._sink, self._training, self._reader = torch, sink, training, reader

    def within(self, observe: Callable[..., None]) -> Callable[..., None]:
        """Return a hook that is called only where there is headroom."""
        is_compiling, training, reader = compiling(self._torch), self._training, self._reader
        c, transform = self._torch._C, reader.transform

        def guarded(*args: Any) -> None:
            if is_compiling() or not reader.may_read():
                return
            try:
                # What reader.undisturbed() does, in the same few calls but none of Python's if there is no mode.
                with training.lock, c.DisableTorchFunction():
                    if c._len_torch_dispatch_stack() or transform() is not None:
                        with reader.undisturbed():
                            observe(*args)
                        return
                    learns = c.is_grad_enabled()
                    c._set_grad_enabled(False)
                    try:
                        observe(*args)
                    finally:
                        c._set_grad_enabled(learns)
            except Exception as error:
                self._sink.trouble(observe.__name__, error)

        never_compile(self._torch, guarded, callees=True)
        return guarded

    def anywhere(self, observe: Callable[..., None]) -> Callable[..., None]:
        """Return a hook that makes its own headroom."""
        within = self.within(observe)

        def guarded(*args: Any) -> None:
            with headroom:
                within(*args)

        never_compile(self._torch, guarded, callees=True)
        return guarded
