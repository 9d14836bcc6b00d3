"""Measure what recording adds to a step in Keras and TensorFlow, in CPU time of unrecorded and recorded processes."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

TRAINING = """
import json, time
import keras, numpy as np, tensorflow as tf
keras.utils.set_random_seed(0)
layers, random = keras.layers, np.random.default_rng(0)

class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.at = []
    def on_train_batch_end(self, batch, logs=None):
        self.at.append(time.process_time())

def quickest(at, block):
    # Time blocks of steps, because the threads of the data pipeline run ahead of the step.
    at = at[len(at) // 5 :]
    return min((b - a) / block for a, b in zip(at[::block], at[block::block]))

def fit(model, x, y, block):
    clock = Clock()
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=64, epochs=1, verbose=0, callbacks=[clock])
    return quickest(clock.at, block)

def cnn():
    model = keras.Sequential([keras.Input((32, 32, 3))])
    for width in (32, 64, 128):
        for layer in (layers.Conv2D(width, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D()):
            model.add(layer)
    model.add(layers.Flatten())
    model.add(layers.Dense(10))
    x, y = random.normal(size=(64 * 50, 32, 32, 3)), random.normal(size=(64 * 50, 10))
    return fit(model, x.astype("f4"), y.astype("f4"), 8)

def mlp():
    model = keras.Sequential([keras.Input((16,)), layers.Dense(64, activation="relu"), layers.Dense(1)])
    x = random.normal(size=(64 * 600, 16)).astype("f4")
    return fit(model, x, x.sum(1, keepdims=True), 50)

def loop():
    x = tf.constant(random.normal(size=(64, 16)).astype("f4"))
    weights = [tf.Variable(random.normal(size=shape).astype("f4") / 10) for shape in ((16, 64), (64, 1))]
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.nn.relu(x @ weights[0]) @ weights[1] - 1.0) ** 2)
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * gradient)
    at = []
    for _ in range(1000):
        step(x)
        at.append(time.process_time())
    return quickest(at, 50)

print(json.dumps({"Keras CNN": cnn(), "Keras MLP": mlp(), "tf.function of an MLP": loop()}))
"""

STAGES = {"unrecorded": (), "default": wire.DEFAULT_STAGES, "all": wire.STAGES}


def steps_s(stages: tuple[str, ...]) -> dict[str, float]:
    """Return the CPU time of a step in seconds for each training, unrecorded if no stages are given."""
    with tempfile.TemporaryDirectory() as logs:
        recorded = {wire.ENV_LOGS: logs, wire.ENV_STAGES: ",".join(stages), "PYTHONPATH": str(BOOTSTRAP)}
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **(recorded if stages else {})}
        done = subprocess.run([sys.executable, "-c", TRAINING], env=env, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def main() -> None:
    """Print the medians over the rounds, for each training and choice of stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = [{kind: steps_s(stages) for kind, stages in STAGES.items()} for _ in range(parser.parse_args().rounds)]
    for name in rounds[0]["unrecorded"]:
        plain = statistics.median(found["unrecorded"][name] for found in rounds)
        for kind in ("default", "all"):
            added = statistics.median(found[kind][name] - found["unrecorded"][name] for found in rounds)
            ratio = statistics.median(found[kind][name] / found["unrecorded"][name] for found in rounds)
            print(f"{name}, {kind} stages: {plain * 1e3:.2f} ms per step, {added * 1e3:+.2f} ms, {ratio:.3f}x")


if __name__ == "__main__":
    main()
