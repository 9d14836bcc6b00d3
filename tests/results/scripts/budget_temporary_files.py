"""Thousands of files that are gone at the end come before the one that counts."""

import json
import os

import net

os.makedirs("scratch", exist_ok=True)
for number in range(6000):
    with open(f"scratch/{number}.tmp", "w") as file:
        file.write(str(number))
    os.remove(f"scratch/{number}.tmp")
model = net.train()
with open("result.json", "w") as file:
    json.dump({"loss": net.noisy_score(model)}, file)
