"""The TensorBoard callback, with graphs and histograms."""

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8))
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
logs = tf.keras.callbacks.TensorBoard("logs", histogram_freq=1, update_freq="batch")
model.fit(x, tf.reduce_sum(x, 1), epochs=2, verbose=0, validation_split=0.25, callbacks=[logs])
