"""Hook tf.gradients, by which a script takes gradients in a graph without a tape or an optimizer."""

from __future__ import annotations

from ...process.replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...process.sink import Sink


def watch_symbolic_gradients(tf: Any, sink: Sink, observe: Callable[[Any, Any, Any], None]) -> None:
    """Call ``observe(losses, sources, gradients)`` after each call in a script. The optimizers' own are left out."""

    def watched(compute: Callable[..., Any]) -> Callable[..., Any]:
        def gradients(ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
            found = compute(ys, xs, *args, **kwargs)
            sink.guarded("gradients", lambda: observe(ys, xs, found))
            return found

        return gradients

    for holder in (tf, tf.compat.v1, tf.compat.v2):
        replace(holder, "gradients", watched)
