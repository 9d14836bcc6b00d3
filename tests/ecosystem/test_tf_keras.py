"""Keras 2, as the package tf_keras, is recorded: fit, a train_step of one's own, a loop, and mixed precision."""

import importlib.util

import pytest

from tests.process.conftest import Project

pytestmark = [
    pytest.mark.ecosystem,
    pytest.mark.skipif(importlib.util.find_spec("tf_keras") is None, reason="tf_keras is not installed"),
]

TRAINING = """
import tensorflow as tf, tf_keras as keras, numpy as np
keras.utils.set_random_seed(0)
x, y = np.random.normal(size=(64, 8)).astype("f4"), np.random.normal(size=(64, 1)).astype("f4")

def net(kind=keras.Sequential):
    model = kind([keras.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(1, dtype="float32")])
    models.append(model)
    return model

class Custom(keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return {"loss": loss}

models = []
for model in (net(), net(Custom)):
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=16, verbose=0)
model, optimizer = net(), keras.optimizers.SGD(0.1)
for _ in range(3):
    optimizer.minimize(lambda: tf.reduce_mean((model(x) - y) ** 2), model.trainable_variables)
keras.mixed_precision.set_global_policy("mixed_float16")
model = net()
model.compile("sgd", "mse")
history = model.fit(x, y, batch_size=64, epochs=2, verbose=0).history["loss"]
weights = [w.numpy().astype("f8").sum() for model in models for w in model.trainable_weights]
print(f"{sum(weights):.17g} {history[-1]:.17g}")
"""


def test_tf_keras(project: Project) -> None:
    project.write("train.py", TRAINING)
    done = project.run("train.py", "--runs", "2", "--out", "results")
    assert done.code == 0, done.out
    (group,) = done.json["groups"]
    run = group["runs"][0]
    assert (run["steps"], run["warnings"]) == (4 + 4 + 3 + 2, [])
    assert "batch" in group["stages"]
    printed = (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text().split()
    (rank,) = run["ranks"]
    assert float(printed[0]) == pytest.approx(rank["sum_of_weights"], rel=1e-12)
    assert float(printed[1]) == rank["final_loss"]  # not multiplied by the loss scale
