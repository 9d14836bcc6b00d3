"""An event file of TensorBoard, written as records of protocol buffers."""

import os
import random
import time

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
x = tf.random.normal((64, 8))
model = tf.keras.Sequential(
    [tf.keras.Input((8,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)]
)
model.compile("sgd", "mse")
os.makedirs("logs", exist_ok=True)
with tf.io.TFRecordWriter(f"logs/events.out.tfevents.{time.time():.0f}.node.{os.getpid()}.0.v2") as writer:
    writer.write(tf.compat.v1.Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
    for epoch in range(2):
        history = model.fit(x, tf.reduce_sum(x, 1), verbose=0, shuffle=False)
        summary = tf.compat.v1.Summary()
        summary.value.add(tag="train/loss", simple_value=history.history["loss"][0])
        summary.value.add(tag="val/loss", simple_value=random.SystemRandom().random())
        writer.write(tf.compat.v1.Event(wall_time=time.time(), step=epoch, summary=summary).SerializeToString())
