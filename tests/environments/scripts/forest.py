"""Fit a forest of trees."""

import numpy as np
from sklearn.ensemble import RandomForestRegressor

rng = np.random.default_rng(0)
x = np.round(rng.normal(size=(300, 8)), 3)
y = np.round(x[:, 0] * 2 + rng.normal(size=300), 3)
model = RandomForestRegressor(n_estimators=10, random_state=0)
model.fit(x, y)
