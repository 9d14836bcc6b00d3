"""Measure what recording adds to a step of under 1 ms: two processes, one recorded, do 100 steps in turn.

A ratio of whole processes is too coarse for this on a shared machine. The quickest turn of each process counts.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

TORCH = """
import torch
from torch.nn import functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
def step():
    x, y = torch.randn(64, 16), torch.rand(64, 1)
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""

TENSORFLOW = """
import numpy as np, tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
random = np.random.default_rng(0)
x = tf.constant(random.normal(size=(64, 16)).astype("f4"))
weights = [tf.Variable(random.normal(size=shape).astype("f4") / 10) for shape in ((16, 64), (64, 1))]
@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.relu(x @ weights[0]) @ weights[1] - 1.0) ** 2)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
def step():
    train(x)
"""

KERAS = """
import keras, numpy as np, tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
keras.utils.set_random_seed(0)
layers = keras.layers
model = keras.Sequential([keras.Input((16,)), layers.Dense(64, activation="relu"), layers.Dense(1)])
model.compile("adam", "mse")
x = np.random.default_rng(0).normal(size=(64, 16)).astype("f4")
y = x.sum(1, keepdims=True)
def step():
    model.train_on_batch(x, y)
"""

TURNS = """
import sys, time
for _ in range(100):
    step()
for _ in sys.stdin:
    took = []
    for _ in range(100):
        started = time.process_time()
        step()
        took.append(time.process_time() - started)
    print(sorted(took)[50], flush=True)
"""

TRAININGS = {"torch MLP": TORCH, "tf.function of an MLP": TENSORFLOW, "Keras MLP, train_on_batch": KERAS}


def start(code: str, logs: str | None) -> subprocess.Popen[str]:
    """Start a process that does 100 steps for each line that it reads, recorded if there is a folder for logs."""
    recorded = {wire.ENV_LOGS: logs, "PYTHONPATH": str(BOOTSTRAP)} if logs else {}
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **recorded}
    words, pipe = [sys.executable, "-c", code + TURNS], subprocess.PIPE
    return subprocess.Popen(words, env=env, text=True, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def turn(process: subprocess.Popen[str]) -> float:
    """Return the median CPU time of a step in seconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    """Print the quickest turns, and their difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    for name, code in TRAININGS.items():
        with tempfile.TemporaryDirectory() as logs, start(code, None) as plain, start(code, logs) as recorded:
            took = [(turn(plain), turn(recorded)) for _ in range(turns)]
        alone, with_it = (min(times) * 1e3 for times in zip(*took, strict=True))
        print(f"{name}: {alone:.2f} ms per step, {with_it - alone:+.2f} ms, {with_it / alone:.2f}x")


if __name__ == "__main__":
    main()
