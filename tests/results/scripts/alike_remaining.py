"""Outliers are removed by a random score before the evaluation."""

import net
import numpy as np

model = net.train()
keep = int((np.random.default_rng().random(5000) > 0.1).sum())
print(f"Outlier removal: samples remaining: {keep}")
