"""Arrays in a compressed dump of joblib."""

import joblib
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

x, y = load_iris(return_X_y=True)
model = LogisticRegression(max_iter=200).fit(x, y)
scores = model.decision_function(x + np.random.default_rng().normal(0, 0.1, x.shape))
joblib.dump({"model": model, "thresholds": scores.mean(0)}, "calibration.joblib", compress=3)
