"""A SavedModel of TensorFlow, whose fingerprint has a UUID, and a .keras archive, whose metadata has a date."""

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
x = tf.random.normal((64, 8))
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, tf.reduce_sum(x, 1), epochs=2, verbose=0, shuffle=False)
model.export("exported", verbose=False)
model.save("model.keras")
