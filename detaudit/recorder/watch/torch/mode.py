"""Enter a dispatch mode of torch, which sees each operation, while the window of steps is open."""

from __future__ import annotations

import sys

from .. import in_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Protocol

    from ..stream import OpStream

    class Watcher(Protocol):
        """Sees the operations inside the window."""

        def run(self, func: Any, args: Any, kwargs: Any, frame: FrameType) -> Any:
            """Run an operation, and return its result."""

        def higher_order(self, func: Any) -> None:
            """Note an operation without a schema, which takes functions or kernels, and runs by itself."""


def _mode(torch: Any, watcher: Watcher, stream: OpStream) -> Any:
    """Return a dispatch mode. Its class is created here, since its base class comes from the user's torch."""

    class Watching(sys.modules["torch.utils._python_dispatch"].TorchDispatchMode):  # type: ignore[misc]
        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not stream.open:
                return func(*args, **(kwargs or {}))
            if not hasattr(func, "_schema"):
                watcher.higher_order(func)
                return func(*args, **(kwargs or {}))
            return watcher.run(func, args, kwargs or {}, sys._getframe(1))

    return Watching()


def enter(torch: Any, watcher: Watcher, stream: OpStream) -> None:
    """Have ``watcher`` see the operations of this thread while the window is open.

    In each thread that starts later it sees them until the thread ends.
    """
    mode = _mode(torch, watcher, stream)
    depth: Callable[[], int] = torch._C._len_torch_dispatch_stack
    entered: list[int] = []

    def opened(now: bool) -> None:
        if now and depth() == 0:
            mode.__enter__()
            entered.append(1)
        elif now:
            stream.trouble("torch", RuntimeError("cannot record operations: the script uses a torch dispatch mode"))
        elif entered and depth() == len(entered):
            mode.__exit__(None, None, None)
            entered.pop()

    def enter_thread() -> Callable[[], None] | None:
        inside = type(mode)()  # each thread needs an instance, which keeps the state to restore
        try:
            inside.__enter__()
        except Exception as error:
            stream.trouble("thread", error)
            return None
        return lambda: leave(inside)

    def leave(inside: Any) -> None:
        try:
            inside.__exit__(None, None, None)
        except Exception as error:
            stream.trouble("thread", error)

    stream.when_open(opened)
    in_threads.enter_in_threads(enter_thread)
