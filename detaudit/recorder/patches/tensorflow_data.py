"""Make tf.data return elements in order, and run functions with random numbers or state sequentially."""

from __future__ import annotations

import inspect

from ..randomness import tensorflow_data
from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes, PatchOptions

_SEQUENTIAL = {
    "parallel_map_dataset_v2": "map_dataset",
    "parallel_interleave_dataset_v2": "interleave_dataset",
    "parallel_interleave_dataset_v3": "interleave_dataset",
    "parallel_interleave_dataset_v4": "interleave_dataset",
}
"""A parallel operation, and its sequential counterpart."""


def _in_order(module: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a wrapper that keeps the order of an operation, or runs the sequential one for a stateful function."""
    sequential = getattr(module, _SEQUENTIAL.get(name, ""), None)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        known = inspect.signature(sequential).parameters if sequential is not None else {}

        def operation(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            if sequential is not None and tensorflow_data.is_stateful(given["f"]):
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
    changes.set(tensorflow_data.ordering, "by_flag", True)
    for module, operation in tensorflow_data.operations():
        changes.replace(module, operation, _in_order(module, operation))
    changes.replace(loaded("tensorflow").data.Options, "_to_proto", _ordered_options)
