"""The learning rate follows the clock, and is a constant of the graph."""

import time

import tensorflow as tf
from final import show

tf.random.set_seed(0)
weight = tf.Variable(tf.random.normal((16, 1)))
x = tf.random.normal((64, 16))
rate = 0.01 + time.time() % 1 / 100


@tf.function
def step(batch: tf.Tensor) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((batch @ weight - tf.reduce_sum(batch, 1, keepdims=True)) ** 2)
    weight.assign_sub(rate * tape.gradient(loss, weight))


for _ in range(10):
    step(x)

show([weight])
