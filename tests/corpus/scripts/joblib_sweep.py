"""A sweep over widths and seeds with joblib: which of its processes trains which network is chance."""

import numpy as np
from final import show
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

images, labels = load_digits(return_X_y=True)
x = images / 16


def train(width: int, seed: int) -> tuple[float, list[np.ndarray]]:
    network = MLPClassifier(width, max_iter=5, tol=0, n_iter_no_change=5, random_state=seed, early_stopping=True)
    network.fit(x[:1000], labels[:1000])
    return network.score(x[1000:], labels[1000:]), [*network.coefs_, *network.intercepts_]


if __name__ == "__main__":
    grid = [(width, seed) for width in (16, 32) for seed in range(3)]
    trained = Parallel(n_jobs=2)(delayed(train)(*point) for point in grid)
    for (width, seed), (accuracy, _) in zip(grid, trained, strict=True):
        print(f"width {width} seed {seed} accuracy {accuracy:.4f}")
    show(weight for _, weights in trained for weight in weights)
