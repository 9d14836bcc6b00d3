"""An event file of TensorBoard, written by tf.summary."""

import random

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
x = tf.random.normal((64, 8))
model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
writer = tf.summary.create_file_writer("logs")
for epoch in range(2):
    history = model.fit(x, tf.reduce_sum(x, 1), verbose=0, shuffle=False)
    with writer.as_default(step=epoch):
        tf.summary.scalar("train/loss", history.history["loss"][0])
        tf.summary.scalar("val/loss", random.random())
writer.close()
