"""ModelCheckpoint with the loss in the name, as .keras and as .h5."""

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
x = tf.random.normal((256, 8))
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
callbacks = [
    tf.keras.callbacks.ModelCheckpoint("ckpt/{epoch:02d}-{loss:.3f}.keras", verbose=1),
    tf.keras.callbacks.ModelCheckpoint("best.weights.h5", monitor="loss", save_best_only=True, save_weights_only=True),
]
model.fit(x, tf.reduce_sum(x, 1), epochs=2, verbose=0, callbacks=callbacks)
