"""Trainings whose steps are timed. Each calls ``pace()`` before each step, without an end: see pace.py."""

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Training:
    """Code, and how many steps a block has."""

    code: str
    block: int


TORCH = """
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
{model}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
while True:
    pace()
    x, y = {batch}
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""

CNN = """
conv = lambda a, b: [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
model = nn.Sequential(*conv(3, 32), *conv(32, 64), nn.Flatten(), nn.Linear(4096, 64), nn.ReLU(), nn.Linear(64, 10))
"""

NORMALIZED = """
block = lambda: [nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
layers = [layer for _ in range(32) for layer in block()]
model = nn.Sequential(nn.Conv2d(3, 16, 1), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
"""

GPT = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from transformer import transformer
model = transformer(256)
"""

TENSORFLOW = """
import keras, numpy as np, tensorflow as tf
from keras import layers
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
"""

KERAS_FIT = """
class Paced(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        pace()
model = keras.Sequential([keras.Input({shape}), {layers}, layers.Dense(10)])
model.compile("adam", "mse")
x, y = random.normal(size=(64 * 50, *{shape})).astype("f4"), random.normal(size=(64 * 50, 10)).astype("f4")
model.fit(x, y, batch_size=64, epochs=10_000, verbose=0, callbacks=[Paced()])
"""

KERAS_CNN = KERAS_FIT.format(
    shape=(32, 32, 3),
    layers="*[layer for width in (32, 64, 128) for layer in (layers.Conv2D(width, 3, activation='relu'), "
    "layers.BatchNormalization(), layers.MaxPooling2D())], layers.Flatten()",
)

SMALL_KERAS_CNN = KERAS_FIT.format(
    shape=(8, 8, 1),
    layers="*[layer for width in (32, 64) for layer in (layers.Conv2D(width, 3, padding='same', activation='relu'), "
    "layers.BatchNormalization())], layers.Flatten(), layers.Dense(128, activation='relu')",
)

KERAS_MLP = """
model = keras.Sequential([keras.Input((16,)), layers.Dense(64, activation="relu"), layers.Dense(1)])
model.compile("adam", "mse")
x = random.normal(size=(64, 16)).astype("f4")
y = x.sum(1, keepdims=True)
while True:
    pace()
    model.train_on_batch(x, y)
"""

TF_FUNCTION = """
x = tf.constant(random.normal(size=(64, 16)).astype("f4"))
weights = [tf.Variable(random.normal(size=shape).astype("f4") / 10) for shape in ((16, 64), (64, 1))]
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.relu(x @ weights[0]) @ weights[1] - 1.0) ** 2)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
while True:
    pace()
    step(x)
"""


def of_torch(model: str, batch: str, block: int) -> Training:
    """Return a training with torch."""
    return Training(TORCH.format(model=model, batch=batch), block)


MLP = "torch MLP of 1,153 weights"
TORCH_TRAININGS = {
    MLP: of_torch(
        "model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))",
        "torch.randn(64, 16), torch.rand(64, 1)",
        100,
    ),
    "torch CNN of 0.28 million weights": of_torch(CNN, "torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))", 8),
    "torch CNN with 32 batch normalizations": of_torch(
        NORMALIZED, "torch.randn(32, 3, 16, 16), torch.randint(0, 10, (32,))", 8
    ),
    "GPT of 10.8 million weights": of_torch(GPT, "torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (1024,))", 2),
}
TENSORFLOW_TRAININGS = {
    "Keras CNN": Training(TENSORFLOW + KERAS_CNN, 8),
    "Keras CNN of 0.55 million weights": Training(TENSORFLOW + SMALL_KERAS_CNN, 40),
    "Keras MLP, train_on_batch": Training(TENSORFLOW + KERAS_MLP, 100),
    "MLP in a tf.function": Training(TENSORFLOW + TF_FUNCTION, 100),
}
TRAININGS = {**TORCH_TRAININGS, **TENSORFLOW_TRAININGS}
