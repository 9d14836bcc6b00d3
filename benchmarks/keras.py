"""What recording adds to a step in Keras and TensorFlow, in CPU time: bare and recorded processes in turn."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

ROUNDS = 3

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

def median(at):
    # Of blocks, since threads of the data pipeline run ahead of the step they work for.
    taken = sorted([(b - a) / 5 for a, b in zip(at[10::5], at[15::5])])
    return taken[len(taken) // 2]

def fit(model, x, y, batch, **options):
    model.compile("adam", "mse", **options)
    clock = Clock()
    model.fit(x, y, batch_size=batch, epochs=1, verbose=0, callbacks=[clock])
    return median(clock.at)

def cnn():
    x = random.normal(size=(64 * 70, 32, 32, 3)).astype("f4")
    model = keras.Sequential([keras.Input((32, 32, 3))])
    for width in (32, 64, 128):
        model.add(layers.Conv2D(width, 3, padding="same", activation="relu"))
        model.add(layers.BatchNormalization())
        model.add(layers.MaxPooling2D())
    model.add(layers.Flatten())
    model.add(layers.Dense(10))
    return fit(model, x, random.normal(size=(len(x), 10)).astype("f4"), 64)

def mlp(n=600):
    x = random.normal(size=(64 * n, 16)).astype("f4")
    model = keras.Sequential([keras.Input((16,)), layers.Dense(64, activation="relu"), layers.Dense(1)])
    return fit(model, x, x.sum(1, keepdims=True), 64)

def loop():
    x = tf.constant(random.normal(size=(64, 16)).astype("f4"))
    weights = [tf.Variable(random.normal(size=s).astype("f4") * 0.1) for s in ((16, 64), (64, 1))]
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.nn.relu(x @ weights[0]) @ weights[1] - 1.0) ** 2)
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * gradient)
        return loss
    at = []
    for _ in range(1000):
        step(x)
        at.append(time.process_time())
    return median(at)

print(json.dumps({"Keras CNN, 64 images of 32x32": cnn(), "Keras MLP of two layers": mlp(), "tf.function": loop()}))
"""


def steps_s(env: dict[str, str]) -> dict[str, float]:
    """Return the median CPU time of a step in seconds, for each case."""
    env = {**env, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", TRAINING], env=env, check=True, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(result, dict)
    return result


def main() -> None:
    """Print for each case the median over the rounds, for the default stages and for all."""
    kinds = {"default stages": wire.DEFAULT_STAGES, "all stages": wire.STAGES}
    rounds = []
    for _ in range(ROUNDS):
        found = {"bare": steps_s(dict(os.environ))}
        for kind, stages in kinds.items():
            with tempfile.TemporaryDirectory() as trace:
                wires = {wire.ENV_TRACE: trace, wire.ENV_STAGES: ",".join(stages), "PYTHONPATH": str(BOOTSTRAP)}
                found[kind] = steps_s({**os.environ, **wires})
        rounds.append(found)
    for case in rounds[0]["bare"]:
        bare = statistics.median(found["bare"][case] for found in rounds)
        for kind in kinds:
            ratio = statistics.median(found[kind][case] / found["bare"][case] for found in rounds)
            added = statistics.median(found[kind][case] - found["bare"][case] for found in rounds)
            print(f"{case}, {kind}: a step of {bare * 1e3:.2f} ms becomes {added * 1e3:.2f} ms longer ({ratio:.2f}x)")


if __name__ == "__main__":
    main()
