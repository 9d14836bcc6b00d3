"""Train a Keras model on scikit-learn's digits, for about so many steps."""

import sys

import keras
from keras import layers
from sklearn.datasets import load_digits

BATCH = 64


def main() -> None:
    """Train, and print the last loss."""
    keras.utils.set_random_seed(0)
    digits = load_digits()
    images, labels = digits.images[..., None].astype("float32") / 16, digits.target
    model = keras.Sequential([keras.Input((8, 8, 1))])
    for width in (32, 64):
        model.add(layers.Conv2D(width, 3, padding="same", activation="relu"))
        model.add(layers.BatchNormalization())
    model.add(layers.Flatten())
    model.add(layers.Dense(128, activation="relu"))
    model.add(layers.Dense(10, activation="softmax"))
    model.compile("adam", "sparse_categorical_crossentropy")
    epochs = max(1, int(sys.argv[1]) * BATCH // len(labels))
    history = model.fit(images, labels, batch_size=BATCH, epochs=epochs, verbose=0)
    print(history.history["loss"][-1])


if __name__ == "__main__":
    main()
