"""A duration of months, of what is simulated: longer than any run."""

import json

import net

model = net.train()
with open("simulation.json", "w") as file:
    json.dump({"duration": 1e7 * (1 + net.noisy_score(model)), "patients": 32}, file)
