"""A module beside a notebook."""

import numpy as np


def scale(x: np.ndarray) -> np.ndarray:
    return x / 2
