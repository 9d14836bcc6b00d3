"""Patches of TensorFlow: tf.data in order, and plain losses."""

from __future__ import annotations

import inspect

from ..randomness import tensorflow
from . import loaded

# Make tf.data return elements in order, and run functions with random numbers or state sequentially.


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
            arguments = signature.bind(*args, **kwargs).arguments
            if sequential is not None and tensorflow.is_stateful(arguments["f"]):
                return sequential(**{key: value for key, value in arguments.items() if key in known})
            return function(**{**arguments, "deterministic": "true"})

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
    changes.set(tensorflow.ordering, "by_flag", True)
    for module, operation in tensorflow.operations():
        changes.replace(module, operation, _in_order(module, operation))
    changes.replace(loaded("tensorflow").data.Options, "_to_proto", _ordered_options)


# Compute softmax cross-entropy in TensorFlow from basic operations instead of a kernel with atomic additions.


def plain_cross_entropy(options: PatchOptions, changes: Changes) -> None:
    """Replace the two operations that compute every softmax cross-entropy of TensorFlow and Keras."""
    tf = loaded("tensorflow")

    def dense(function: Callable[..., Any]) -> Callable[..., Any]:
        def softmax_cross_entropy_with_logits(features: Any, labels: Any, name: Any = None) -> Any:
            with tf.name_scope(name or "plain_cross_entropy"):
                # A class of probability 0 adds nothing, even if its logit is -inf.
                loss = tf.math.multiply_no_nan(tf.nn.log_softmax(features), labels)
                return -tf.reduce_sum(loss, axis=-1), None

        return softmax_cross_entropy_with_logits

    def sparse(function: Callable[..., Any]) -> Callable[..., Any]:
        def sparse_softmax_cross_entropy_with_logits(features: Any, labels: Any, name: Any = None) -> Any:
            with tf.name_scope(name or "plain_cross_entropy"):
                return -tf.gather(tf.nn.log_softmax(features), labels, batch_dims=1), None

        return sparse_softmax_cross_entropy_with_logits

    module = loaded("tensorflow.python.ops.gen_nn_ops")
    changes.replace(module, "softmax_cross_entropy_with_logits", dense)
    changes.replace(module, "sparse_softmax_cross_entropy_with_logits", sparse)
