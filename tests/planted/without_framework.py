"""A small training in NumPy that flips one bit, and passes its losses and its weights to ``detaudit.record``."""

import numpy as np

import detaudit
from tests.planted import plants
from tests.planted.noted import Values
from tests.planted.plants import END, STEPS


def record(values: Values) -> None:
    """Train in NumPy, and pass the losses and the weights to ``detaudit.record``."""
    source = np.random.default_rng(3)
    w, b = source.standard_normal((12, 3)), np.zeros(3, "float32")
    values.strike(plants.INITIAL, 1, [w, b])
    for step in range(1, STEPS + 1):
        x, y = source.standard_normal((16, 12)), source.standard_normal((16, 3))
        with np.errstate(all="ignore"):
            error = x @ w + b - y
            loss = np.asarray(np.square(error).mean())
            w -= 0.05 * x.T @ error / 16
            b -= (0.05 * error.mean(0)).astype("float32")
        values.strike(plants.LOSS, step, [loss])
        values.strike(plants.IN_UPDATE, step, [w, b])
        values.note(step, "forward", [loss])
        values.note(step, "update", [w, b])
        detaudit.record(loss=loss, weights=[w, b])
        values.strike(plants.AFTER_UPDATE, step, [w, b])
    values.note(END, "update", [w, b])
    values.write()
