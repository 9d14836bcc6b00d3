"""A search with its times on each line, and in its results."""

import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV

x, y = load_iris(return_X_y=True)
search = GridSearchCV(SGDClassifier(random_state=0, max_iter=50, tol=None), {"alpha": [1e-4, 1e-2]}, cv=3, verbose=3)
search.fit(x, y)
joblib.dump(search.cv_results_, "cv_results.joblib")
print("best", search.best_params_, f"{search.best_score_:.4f}")
