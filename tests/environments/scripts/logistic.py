"""Fit a logistic regression, whose solver is SciPy's."""

import numpy as np
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
x = np.round(rng.normal(size=(400, 12)), 3)
y = (x[:, 0] + np.round(rng.normal(size=400), 3) > 0).astype(int)
model = LogisticRegression(max_iter=300)
model.fit(x, y)
