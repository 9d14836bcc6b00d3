"""Keep the recorder's functions out of torch.compile, where a compiled hook would not run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def compiling(torch: Any) -> Callable[[], bool]:
    """Return a function that returns whether torch.compile is tracing its caller."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


def never_compile(torch: Any, function: Callable[..., Any], *, callees: bool) -> None:
    """Make Dynamo skip the frames of ``function``, and with ``callees`` also of the functions that it calls.

    torch._dynamo.disable does the same, but its import takes seconds, even for a script that compiles nothing.
    """
    dynamo: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(dynamo, "set_code_exec_strategy"):  # torch 2.7 and later
        skip, default = dynamo._FrameAction.SKIP, dynamo._FrameAction.DEFAULT
        strategy = dynamo._FrameExecStrategy(skip, skip if callees else default)
        dynamo.set_code_exec_strategy(function.__code__, strategy)
    elif hasattr(dynamo, "skip_code"):
        dynamo.skip_code(function.__code__)
