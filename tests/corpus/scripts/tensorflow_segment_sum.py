"""A graph network: unsorted_segment_sum and the gradient of gather, which a CPU adds in order."""

import keras
import numpy as np
import tensorflow as tf
from final import show

keras.utils.set_random_seed(1)
nodes, edges = 1000, 60_000
source, to = np.random.randint(0, nodes, edges), np.random.randint(0, 50, edges)
x, y = tf.random.normal((nodes, 16)), tf.random.normal((50, 16))
kernel = tf.Variable(tf.random.normal((16, 16)) * 0.1)


@tf.function
def step() -> None:
    with tf.GradientTape() as tape:
        hidden = tf.tanh(x @ kernel)
        summed = tf.math.unsorted_segment_sum(tf.gather(hidden, source), to, 50) / 1000.0
        loss = tf.reduce_mean((summed - y) ** 2)
    kernel.assign_sub(0.5 * tape.gradient(loss, kernel))


for _ in range(30):
    step()

show([kernel])
