"""Hook the gradients that a GradientTape computes."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...process.sink import Sink


def watch_tapes(tape: Any, sink: Sink, inside: Any, observe: Callable[[Any, Any, Any], None]) -> None:
    """Call ``observe(target, sources, gradients)`` after each outermost gradient of a thread."""
    compute = tape.gradient

    @functools.wraps(compute)
    def gradient(tape_: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "gradient", False):  # of a checkpoint that is recomputed
            return compute(tape_, target, sources, *args, **kwargs)
        inside.gradient = True
        try:
            gradients = compute(tape_, target, sources, *args, **kwargs)
        finally:
            inside.gradient = False
        sink.guarded("gradient", lambda: observe(target, sources, gradients))
        return gradients

    tape.gradient = gradient
