"""What torch.compile and AutoGraph must not trace."""

from __future__ import annotations

import sys

# Keep the recorder's functions out of torch.compile, where a compiled hook would not run.


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


# Keep torch.compile and TensorFlow's AutoGraph, which process all functions that a script calls, out of the probes.

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ..process.recorder import Recorder

    F = TypeVar("F", bound=Callable[..., Any])

_outside: list[Callable[..., Any]] = []


def never_convert(function: F) -> F:
    """Make AutoGraph call ``function`` without converting it, like its do_not_convert."""
    function.autograph_info__ = {}  # type: ignore[attr-defined]
    return function


def outside_graphs(function: F) -> F:
    """Make torch.compile break its graph at a call of ``function``, and never compile its callees."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # as torch._dynamo.disable does
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "_C"):
        never_compile(torch, function, callees=True)
    else:
        _outside.append(function)
    return never_convert(function)


def torch_imported(torch: Any, _: Recorder) -> None:
    """Exclude the functions that were marked before torch was imported."""
    for function in _outside:
        never_compile(torch, function, callees=True)


def constant_when_traced(function: F) -> F:
    """Make torch.compile call ``function`` while it traces, and treat the result as a constant."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return never_convert(function)


def needs_full_graph() -> bool:
    """Return whether torch.compile is tracing with ``fullgraph=True``."""
    tracer: Any = sys.modules.get("torch._dynamo.symbolic_convert")
    if tracer is None:
        return False
    try:
        translator = tracer.InstructionTranslator.current_tx()
    except AttributeError:  # nothing is being traced
        return False
    return bool(translator.one_graph or getattr(translator, "error_on_graph_break", False))
