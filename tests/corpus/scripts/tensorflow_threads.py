"""Two Python threads update one model without a lock."""

import threading

import keras
import numpy as np
import tensorflow as tf
from final import show

keras.utils.set_random_seed(1)
x = np.random.normal(size=(1024, 32)).astype("f4")
y = np.random.randint(0, 4, 1024)
model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step(batch: tf.Tensor, labels: tf.Tensor) -> None:
    with tf.GradientTape() as tape:
        loss = cross_entropy(labels, model(batch))
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        weight.assign_sub(0.1 * gradient)


def train(first: int) -> None:
    for start in range(first * 64, 1024, 128):
        step(x[start : start + 64], y[start : start + 64])


weights = model.trainable_variables
step(x[:64], y[:64])
for _ in range(4):
    threads = [threading.Thread(target=train, args=(first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

show(weights)
