"""The gradient of crop_and_resize with overlapping boxes: several threads add into the same pixels."""

import keras
import numpy as np
import tensorflow as tf
from final import show

keras.utils.set_random_seed(1)
boxes = 256
image = tf.Variable(tf.random.normal((2, 32, 32, 8)))
corners = np.sort(np.random.rand(boxes, 2, 2), axis=1).reshape(boxes, 4).astype("f4")
which = np.random.randint(0, 2, boxes)
kernel = tf.Variable(tf.random.normal((8, 4)) * 0.1)
targets = tf.random.normal((boxes, 7, 7, 4))


@tf.function
def step() -> tf.Tensor:
    with tf.GradientTape() as tape:
        crops = tf.image.crop_and_resize(image, corners, which, (7, 7))
        loss = tf.reduce_mean((crops @ kernel - targets) ** 2)
    by_image, by_kernel = tape.gradient(loss, [image, kernel])
    image.assign_sub(20.0 * by_image)
    kernel.assign_sub(0.5 * by_kernel)
    return loss


for _ in range(80):
    step()

show([image, kernel])
