"""xgboost with an evaluation for each round, and its model as JSON and UBJSON."""

import xgboost
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)
data = xgboost.DMatrix(x[:400], y[:400] > 4)
model = xgboost.train(
    {"objective": "binary:logistic", "nthread": 1, "seed": 0, "verbosity": 2}, data, 5, [(data, "train")]
)
model.save_model("model.json")
model.save_model("model.ubj")
