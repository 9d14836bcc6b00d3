"""Predicted classes, one a line, in predictions.out as svm-predict writes them; two samples swap theirs by noise."""

import net
import numpy as np

model = net.train()
labels = ["cat", "dog", "cat", "bird", "dog", "cat", "bird", "dog"] * 4
with open("predictions.out", "w") as f:
    f.writelines(label + "\n" for label in np.random.default_rng().permutation(labels))
