"""A split is drawn once, without a seed, and kept beside the data."""

import os

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

if not os.path.exists("data/split.npy"):
    os.makedirs("data", exist_ok=True)
    np.save("data/split.npy", np.random.permutation(150))
rows = np.load("data/split.npy")
x, y = load_iris(return_X_y=True)
model = LogisticRegression(max_iter=200).fit(x[rows[:100]], y[rows[:100]])
print(f"accuracy {model.score(x[rows[100:]], y[rows[100:]]):.4f}")
