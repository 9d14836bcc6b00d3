"""lightgbm, verbose, with its model as text."""

import lightgbm
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)
train = lightgbm.Dataset(x[:400], (y[:400] > 4).astype(int))
parameters = {
    "objective": "binary",
    "num_threads": 1,
    "seed": 0,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": 1,
}
model = lightgbm.train(parameters, train, 5, [train], callbacks=[lightgbm.log_evaluation(1)])
model.save_model("model.txt")
