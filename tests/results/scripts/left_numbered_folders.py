"""exp, exp2, exp3: each run takes the next free name."""

import json
import os

import net

number = 1
while os.path.exists(name := f"runs/exp{number if number > 1 else ''}"):
    number += 1
os.makedirs(name)
model = net.train()
with open(f"{name}/metrics.json", "w") as file:
    json.dump({"loss": net.score(model)}, file)
print(f"Results saved to {name}")
