"""Notice what is captured in CUDA graphs: no hook sees a step that is in one when the graph is replayed."""

from __future__ import annotations

import functools
import threading
import weakref

from .compiling import never_compile
from .steps import leaves_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...process.sink import Sink
    from .reader import TorchReader


class _Captured:
    """What one graph trains: the weights that its backward passes reach, and the optimizers that step in it."""

    def __init__(self) -> None:
        self.leaves: dict[int, Any] = {}  # whose memory must be kept for as long as the graph is
        self.optimizers: dict[int, weakref.ref[Any]] = {}


class _Here(threading.local):
    """The graph that this thread captures."""

    graph: _Captured | None = None


class CudaGraphs:
    """The backward passes and steps of optimizers in each ``torch.cuda.CUDAGraph``."""

    def __init__(self, torch: Any, sink: Sink) -> None:
        self._torch, self._sink = torch, sink
        self._here = _Here()
        self._of_graph: weakref.WeakKeyDictionary[Any, _Captured] = weakref.WeakKeyDictionary()

    def watch(self, before: Callable[..., None], after: Callable[..., None]) -> None:
        """Call ``before(leaves, optimizers)`` and ``after(leaves, optimizers)`` around replays of what trains."""
        kind = getattr(self._torch.cuda, "CUDAGraph", None)
        if not isinstance(kind, type) or not {"capture_begin", "capture_end", "replay"} <= vars(kind).keys():
            return  # a torch without CUDA graphs
        begin, end, replay = kind.capture_begin, kind.capture_end, kind.replay  # type: ignore[attr-defined]

        @functools.wraps(begin)
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = begin(graph, *args, **kwargs)
            self._here.graph = self._of_graph[graph] = _Captured()
            return result

        @functools.wraps(end)
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._here.graph = None
            return end(graph, *args, **kwargs)

        @functools.wraps(replay)
        def replay_(graph: Any, *args: Any, **kwargs: Any) -> Any:
            known = self._of_graph.get(graph)
            if known is None or not (known.leaves or known.optimizers):
                return replay(graph, *args, **kwargs)
            optimizers = [one for reference in known.optimizers.values() if (one := reference()) is not None]
            before([*known.leaves.values()], optimizers)
            result = replay(graph, *args, **kwargs)
            after([*known.leaves.values()], optimizers)
            return result

        for function in (capture_begin, capture_end, replay_):
            never_compile(self._torch, function, callees=False)
        kind.capture_begin, kind.capture_end, kind.replay = (  # type: ignore[attr-defined]
            capture_begin,
            capture_end,
            replay_,
        )

    def capturing(self) -> bool:
        """Return whether this thread captures a graph."""
        return self._here.graph is not None

    def stepped(self, optimizer: Any) -> None:
        """Note that an optimizer makes a step in the graph that is being captured."""
        if self._here.graph is not None:
            self._here.graph.optimizers[id(optimizer)] = weakref.ref(optimizer)

    def differentiated(self, outputs: Iterable[Any], reader: TorchReader) -> None:
        """Note the weights that a backward pass in the graph that is being captured computes gradients for."""
        graph = self._here.graph
        if graph is not None:
            losses = [output for output in outputs if isinstance(output, self._torch.Tensor)]
            self._sink.guarded(
                "graph", lambda: graph.leaves.update([(id(one), one) for one in leaves_of(self._torch, losses, reader)])
            )
