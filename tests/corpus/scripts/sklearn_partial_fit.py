"""A linear classifier that learns from a stream of batches, with a fixed random_state."""

import numpy as np
from final import show
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(1600)
classifier = SGDClassifier(loss="log_loss", average=True, random_state=0)
for batch in np.split(order, 16):
    classifier.partial_fit(images[batch] / 16, labels[batch], classes=np.arange(10))

print(f"accuracy {classifier.score(images[1600:] / 16, labels[1600:]):.4f}")
show([classifier.coef_, classifier.intercept_])
