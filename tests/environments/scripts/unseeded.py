"""Draw numbers without a seed."""

import numpy as np

w = np.random.default_rng().normal(size=10)
np.save("w.npy", w)
