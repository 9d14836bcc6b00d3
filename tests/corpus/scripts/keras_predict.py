"""Keras predict and evaluate of a seeded model with dropout, which is off then."""

import keras
import numpy as np
from final import show

keras.utils.set_random_seed(1)
x = np.random.normal(size=(512, 32)).astype("f4")
y = np.random.randint(0, 4, 512)
layers = keras.layers
model = keras.Sequential(
    [keras.Input((32,)), layers.Dense(32, activation="relu"), layers.Dropout(0.3), layers.Dense(4)]
)
model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
show([model.predict(x, verbose=0), np.array(model.evaluate(x, y, verbose=0))])
