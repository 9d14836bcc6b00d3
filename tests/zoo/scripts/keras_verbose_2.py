"""fit with one line for each epoch, and a log as CSV."""

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8))
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, tf.reduce_sum(x, 1), epochs=3, verbose=2, callbacks=[tf.keras.callbacks.CSVLogger("log.csv", append=True)])
