"""Thousands of files that are gone at the end."""

import json
import os

import net

os.makedirs("scratch", exist_ok=True)
for number in range(6000):
    with open(f"scratch/{number}.tmp", "w") as file:
        file.write(str(number))
    os.replace(f"scratch/{number}.tmp", "scratch/current")
os.remove("scratch/current")
model = net.train()
with open("result.json", "w") as file:
    json.dump({"loss": net.score(model)}, file)
