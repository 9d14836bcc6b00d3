"""Keep torch.compile and TensorFlow's AutoGraph, which process all functions that a script calls, out of the probes."""

from __future__ import annotations

import sys

from ..adapters.torch.compiling import never_compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

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


def torch_imported(torch: Any) -> None:
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
