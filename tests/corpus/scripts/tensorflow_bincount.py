"""A soft histogram as a target: bincount with weights adds from several threads, op determinism or not."""

import keras
import numpy as np
import tensorflow as tf
from final import show

keras.utils.set_random_seed(1)
samples = 200_000
bins = np.random.randint(0, 64, samples)
amounts = tf.random.normal((samples,))
scale = tf.Variable(1.0)
kernel = tf.Variable(tf.random.normal((8, 64)) * 0.1)
codes = tf.random.normal((16, 8))


@tf.function
def step() -> None:
    histogram = tf.math.bincount(bins, weights=tf.abs(amounts * scale), minlength=64, dtype=tf.float32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((codes @ kernel - histogram / 2000.0) ** 2)
    kernel.assign_sub(0.5 * tape.gradient(loss, kernel))
    scale.assign(1.0 + 0.01 * tf.tanh(loss))


for _ in range(30):
    step()

show([kernel, scale])
