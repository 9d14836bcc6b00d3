"""Find the numbers that an operation of TensorFlow is given: constants, and attributes such as ``alpha``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


def places(ins: Sequence[Any], graph: Any) -> tuple[int, ...]:
    """Return which inputs without dimensions come from Python: in a graph, its constants and its own inputs.

    An eager operation does not know where its inputs come from, so all of them count.
    """
    inner = graph is not None and hasattr(getattr(graph, "outer_graph", None), "outer_graph")
    outside = ("Const",) if inner else ("Const", "Placeholder")
    return tuple(
        [
            place
            for place, tensor in enumerate(ins)
            if tensor.shape.rank == 0 and tensor.dtype.name != "string" and (graph is None or tensor.op.type in outside)
        ]
    )


def attributes(attrs: Any) -> dict[str, str]:
    """Return the attributes that are floats, by name: values in an eager operation, messages in a graph."""
    return dict(_floats(attrs or ()))


def _floats(attrs: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for name, value in zip(attrs[::2], attrs[1::2]):
        if type(value) is float:
            yield str(name), repr(value)
        elif hasattr(value, "WhichOneof") and value.WhichOneof("value") == "f":
            yield str(name), repr(value.f)
