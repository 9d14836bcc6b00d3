"""A fitted estimator in a dump of joblib."""

import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

x, y = load_iris(return_X_y=True)
model = make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)).fit(x, y)
joblib.dump(model, "model.joblib")
print(f"accuracy {model.score(x, y):.4f}")
