"""A small training with TensorFlow's gradient tape that flips one bit of a variable."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.planted import plants
from tests.planted.noted import Values
from tests.planted.plants import END, STEPS


def tape(values: Values) -> None:
    """Train in eager code: detaudit reads the weights of a step as they enter the next gradient."""
    tf: Any = importlib.import_module("tensorflow")
    source = np.random.default_rng(3)
    module = tf.Module()
    module.w, module.b = tf.Variable(source.standard_normal((12, 3))), tf.Variable(np.ones(3, "float64"))
    module.scale = tf.Variable(np.ones(3), trainable=False)
    weights, buffers = [module.w, module.b], [module.scale]

    def strike(place: str, step: int, variables: Sequence[Any]) -> None:
        found = _arrays(variables)
        values.strike(place, step, found)
        for variable, array in zip(variables, found, strict=True):
            variable.assign(array)

    strike(plants.INITIAL, 1, weights)
    values.note(0, "init", _arrays(weights))
    for step in range(1, STEPS + 1):
        x, y = source.standard_normal((16, 12)), source.standard_normal((16, 3))
        with tf.GradientTape() as gradients:
            loss = tf.reduce_mean(tf.square((tf.constant(x) @ module.w + module.b) * module.scale - y))
        values.note(step, "forward", _arrays([loss]))
        for variable, gradient in zip(weights, gradients.gradient(loss, weights), strict=True):
            variable.assign_sub(0.05 * gradient)
        strike(plants.IN_UPDATE, step, weights)
        strike(plants.AFTER_UPDATE, step, weights)
        strike(plants.AFTER_STEP, step, buffers)
        values.note(step, "update", _arrays(weights))
    values.note(END, "state", _arrays([*weights, *buffers]))
    values.write()


def _arrays(tensors: Sequence[Any]) -> list[Any]:
    return [np.array(one.numpy(), ndmin=1) for one in tensors]
