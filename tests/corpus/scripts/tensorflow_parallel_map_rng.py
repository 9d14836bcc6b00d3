"""Augmentation with a stateful random operation inside a parallel tf.data map."""

import keras
import numpy as np
import tensorflow as tf
from final import show

keras.utils.set_random_seed(1)
x = np.random.normal(size=(2048, 32)).astype("f4")
y = np.random.randint(0, 4, 2048)


def augment(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return image + tf.random.normal(tf.shape(image), stddev=0.1), label


data = (
    tf.data.Dataset.from_tensor_slices((x, y)).map(augment, num_parallel_calls=tf.data.AUTOTUNE).batch(64).prefetch(2)
)
model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=2, verbose=0)
show(model.get_weights())
