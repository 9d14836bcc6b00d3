"""Make tf.data return elements in order, and run functions with random numbers or state sequentially."""

from __future__ import annotations

import inspect

from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes, PatchOptions

_OPS = "tensorflow.python.ops."
_SEQUENTIAL = {
    "parallel_map_dataset_v2": "map_dataset",
    "parallel_interleave_dataset_v2": "interleave_dataset",
    "parallel_interleave_dataset_v3": "interleave_dataset",
    "parallel_interleave_dataset_v4": "interleave_dataset",
}
"""A parallel operation, and its sequential counterpart."""

_RANDOM_SOURCES = ("Shuffle", "Random", "Generator")
_HARMLESS = ("Assert",)


def _function_attributes(operation: Any) -> list[Any]:
    """Return the attributes of an operation that name the functions it calls."""
    found: list[Any] = []
    for attribute in operation.op_def.attr:  # node_def may hold constants of any size
        if attribute.type == "func":
            found.append(operation.get_attr(attribute.name))
        elif attribute.type == "list(func)":
            found += operation.get_attr(attribute.name)
    return found


def _is_stateful_itself(operation: Any) -> bool:
    kind = operation.type
    # Datasets are marked stateful so that they are not folded into constants.
    source = "Dataset" in kind and not any([word in kind for word in _RANDOM_SOURCES])
    return bool(operation.op_def.is_stateful) and not source and kind not in _HARMLESS


def is_stateful(function: Any) -> bool:
    """Return whether a traced function draws random numbers, calls Python or uses state, or True if unknown."""
    seen: set[str] = set()

    def any_in(graph: Any) -> bool:
        for operation in graph.get_operations():
            called = _function_attributes(operation)
            if not called and _is_stateful_itself(operation):
                return True
            for attribute in called:
                if attribute.name not in seen:
                    seen.add(attribute.name)
                    if any_in(graph._get_function(attribute.name).graph):
                        return True
        return False

    try:
        return any_in(function.graph)
    except Exception:
        return True


def _in_order(module: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a wrapper that keeps the order of an operation, or runs the sequential one for a stateful function."""
    sequential = getattr(module, _SEQUENTIAL.get(name, ""), None)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        known = inspect.signature(sequential).parameters if sequential is not None else {}

        def operation(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            if sequential is not None and is_stateful(given["f"]):
                return sequential(**{key: value for key, value in given.items() if key in known})
            return function(**{**given, "deterministic": "true"})

        return operation

    return make


def _ordered_options(function: Callable[..., Any]) -> Callable[..., Any]:
    def _to_proto(self: Any) -> Any:
        options = function(self)
        options.deterministic = True
        return options

    return _to_proto


def make_deterministic(options: PatchOptions, changes: Changes) -> None:
    """Make every parallel operation of tf.data and every tf.data.Options keep the order, whatever the script sets.

    Parallel maps and interleaves of stateful functions process one element at a time, as with op determinism.
    """
    for name in ("gen_dataset_ops", "gen_experimental_dataset_ops"):
        module = loaded(_OPS + name)
        for operation in [name for name in dir(module) if name.islower() and not name.endswith("_eager_fallback")]:
            function = getattr(module, operation)
            if inspect.isfunction(function) and "deterministic" in inspect.signature(function).parameters:
                changes.replace(module, operation, _in_order(module, operation))
    changes.replace(loaded("tensorflow").data.Options, "_to_proto", _ordered_options)
