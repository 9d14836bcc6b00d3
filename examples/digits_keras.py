"""Recognize handwritten digits with Keras: every pixel's intensity is a token with an embedding of its own.

The seed is set, as the guides recommend. Every run still gives a different result.
"""

import keras
import numpy as np
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)

LEVELS = 17


def main() -> None:
    """Train for a few epochs and print the loss and the accuracy."""
    data = load_digits()
    tokens = data.data.astype("int32") + np.arange(64) * LEVELS
    model = keras.Sequential(
        [
            keras.layers.Embedding(64 * LEVELS, 16),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(tokens[:1500], data.target[:1500], batch_size=256, epochs=6, verbose=2)
    loss, accuracy = model.evaluate(tokens[1500:], data.target[1500:], verbose=0)
    print(f"test loss {loss:.4f}, accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
