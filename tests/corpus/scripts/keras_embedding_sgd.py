"""Keras fit of an Embedding with plain SGD: a sparse update adds repeated words from several threads."""

import keras
import numpy as np
from final import show

keras.utils.set_random_seed(1)
x = np.random.randint(0, 2000, (4096, 32))
y = np.random.randint(0, 4, 4096)
layers = keras.layers
model = keras.Sequential([layers.Embedding(2000, 16), layers.GlobalAveragePooling1D(), layers.Dense(4)])
model.compile(keras.optimizers.SGD(1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, epochs=3, batch_size=256, verbose=0)
show(model.get_weights())
