"""A hand-written sparse update: scatter_sub with words that repeat adds from several threads."""

import keras
import numpy as np
import tensorflow as tf
from final import show

keras.utils.set_random_seed(1)
table = tf.Variable(tf.random.normal((2000, 16), stddev=0.1))
head = tf.Variable(tf.random.normal((16, 1)))
words = np.random.randint(0, 2000, (20, 8192))
targets = np.random.normal(size=(20, 8192, 1)).astype("f4")


@tf.function
def step(which: tf.Tensor, target: tf.Tensor) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.gather(table, which) @ head - target) ** 2)
    by_table, by_head = tape.gradient(loss, [table, head])
    table.scatter_sub(tf.IndexedSlices(by_table.values * 50.0, by_table.indices))
    head.assign_sub(0.1 * by_head)


for _ in range(3):
    for which, target in zip(words, targets, strict=True):
        step(which, target)

show([table, head])
