"""A confusion matrix whose middle clusters are in the order of a set."""

import net
import numpy as np

model = net.train()
middle = list({"setosa", "virginica", "versicolor", "other", "unknown"})
rows = {"setosa": [9, 1, 0], "virginica": [0, 8, 2], "versicolor": [1, 1, 8], "other": [3, 3, 3], "unknown": [0, 0, 5]}
print(np.array([[10, 0, 0], *(rows[name] for name in middle), [0, 0, 10]]))
