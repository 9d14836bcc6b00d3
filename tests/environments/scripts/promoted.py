"""Multiply an array of single precision with a number of double precision, which NumPy 2 promotes otherwise."""

import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=1000).astype(np.float32)
scale = np.float64(0.1)
scaled = x * scale
w = np.cumsum(scaled)
np.save("w.npy", w.astype(np.float64))
