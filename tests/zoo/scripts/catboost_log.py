"""catboost, verbose, with catboost_info/ and its model."""

from catboost import CatBoostClassifier
from sklearn.datasets import load_iris

x, y = load_iris(return_X_y=True)
model = CatBoostClassifier(iterations=8, depth=2, random_seed=0, thread_count=1, verbose=1).fit(x, y)
model.save_model("model.cbm")
