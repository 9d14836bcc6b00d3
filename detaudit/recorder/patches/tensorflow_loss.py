"""Compute softmax cross-entropy in TensorFlow from basic operations instead of a kernel with atomic additions."""

from __future__ import annotations

from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes, PatchOptions


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
