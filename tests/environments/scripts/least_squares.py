"""Solve normal equations: the products of matrices match, and the solver of LAPACK does not."""

import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(300, 40))
y = x.sum(axis=1) + rng.normal(size=300)
gram = x.T @ x
right = x.T @ y
w = np.linalg.solve(gram, right)
np.save("w.npy", w)
