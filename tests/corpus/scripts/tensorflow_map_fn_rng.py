"""A stateful random operation inside map_fn: its ten parallel iterations draw in any order."""

import keras
import numpy as np
import tensorflow as tf
from final import show

keras.utils.set_random_seed(1)
x = np.random.normal(size=(1024, 32)).astype("f4")
y = np.random.randint(0, 4, 1024)
model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
optimizer = keras.optimizers.SGD(0.1)
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step(batch: tf.Tensor, labels: tf.Tensor) -> None:
    noisy = tf.map_fn(lambda row: row + tf.random.normal((32,)), batch, parallel_iterations=10)
    with tf.GradientTape() as tape:
        loss = cross_entropy(labels, model(noisy))
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))


for start in [*range(0, 1024, 128)] * 3:
    step(x[start : start + 128], y[start : start + 128])

show(model.get_weights())
