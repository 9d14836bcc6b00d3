"""Keeps the probes out of what torch.compile and TensorFlow's AutoGraph make of a script.

Both read the functions that a script calls, these too.
"""

from __future__ import annotations

import sys

from ..adapters.torch.compiling import never_compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_outside: list[Callable[..., Any]] = []


def as_it_is(function: F) -> F:
    """Have AutoGraph call ``function`` unconverted, by the mark of its do_not_convert."""
    function.autograph_info__ = {}  # type: ignore[attr-defined]
    return function


def outside_of_graphs(function: F) -> F:
    """Have torch.compile break its graph at a call of ``function``, and never compile what it calls."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # the mark of torch._dynamo.disable
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "_C"):
        never_compile(torch, function, callees=True)
    else:
        _outside.append(function)
    return as_it_is(function)


def torch_imported(torch: Any) -> None:
    """Make up for the functions that were marked before torch was there."""
    for function in _outside:
        never_compile(torch, function, callees=True)


def known_when_traced(function: F) -> F:
    """Have torch.compile call ``function`` while it traces, and take the answer for a constant."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return as_it_is(function)


def graph_may_not_break() -> bool:
    """Whether torch.compile is tracing with ``fullgraph=True``."""
    tracer: Any = sys.modules.get("torch._dynamo.symbolic_convert")
    if tracer is None:
        return False
    try:
        translator = tracer.InstructionTranslator.current_tx()
    except AttributeError:  # nothing is being traced
        return False
    return bool(translator.one_graph or getattr(translator, "error_on_graph_break", False))
