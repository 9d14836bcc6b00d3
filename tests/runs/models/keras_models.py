"""Write what keras.zip holds: ``python keras_models.py FOLDER VALUE``, for a 4, again 4 in another order, and b 5."""

import sys

import numpy as np
import tensorflow as tf  # type: ignore[import-untyped]


def main(folder: str, last: str) -> None:
    """Export a model, which lists its variables in the order of their addresses."""
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
    model.layers[-1].set_weights([np.array([[1], [2], [3]], "f4"), np.array([last], "f4")])
    model.export(folder, verbose=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
