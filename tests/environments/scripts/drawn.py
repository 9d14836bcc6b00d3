"""Draw numbers and sort them: nothing here was ever rounded otherwise."""

import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=1000)
w = np.sort(x)
np.save("w.npy", w)
