"""Reduce data to its first components, by the solver that scikit-learn chooses."""

import numpy as np
from sklearn.decomposition import PCA

rng = np.random.default_rng(0)
x = np.round(rng.normal(size=(400, 12)), 3)
model = PCA(n_components=3)
model.fit(x)
