"""Write what tensorflow.zip holds: ``python tensorflow_models.py FOLDER VALUE [more]``, for a 4, again 4 more, b 5."""

import sys
from pathlib import Path
from typing import Any

import tensorflow as tf  # type: ignore[import-untyped]


class Model(tf.Module):  # type: ignore[misc]
    """Two variables, and a constant in the graph."""

    def __init__(self, last: float) -> None:
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, last]], name="w")
        self.b = tf.Variable([1, 2], dtype=tf.int64)
        self.last = last

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])  # type: ignore[untyped-decorator]
    def __call__(self, x: Any) -> Any:
        """Return a product."""
        return tf.matmul(x, self.w) * tf.constant(self.last)


def main(folder: str, last: str, *more: str) -> None:
    """Save a checkpoint and a SavedModel; ``more`` functions before it change the counters in names."""
    model = Model(float(last))
    tf.train.Checkpoint(m=model, step=tf.Variable(3)).save(str(Path(folder, "ck", "c")))
    for _ in more * 3:
        tf.function(lambda x: x + 1)(tf.ones(2))
    tf.saved_model.save(model, str(Path(folder, "sm")))


if __name__ == "__main__":
    main(*sys.argv[1:])
