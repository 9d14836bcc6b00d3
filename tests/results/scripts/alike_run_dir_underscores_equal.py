"""The folder of a run has its date with underscores; it is printed and kept."""

import datetime
import json
import os

import net

run = f"runs/{datetime.datetime.now():%Y_%m_%d_%H_%M_%S}"
os.makedirs(run)
model = net.train()
print(f"saving to {run}")
with open(f"{run}/config.json", "w") as f:
    json.dump({"output_dir": run, "lr": 0.1, "loss": net.score(model)}, f)
