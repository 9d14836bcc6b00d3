"""Write to a temporary name, then replace: a reader never sees half of it."""

import json
import os

import net

model = net.train()
with open("metrics.json.tmp", "w") as file:
    json.dump({"epochs": 3, "loss": net.noisy_score(model)}, file)
    file.flush()
    os.fsync(file.fileno())
os.replace("metrics.json.tmp", "metrics.json")
