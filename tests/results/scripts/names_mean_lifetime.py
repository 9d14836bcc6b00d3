"""A fitted lifetime of particles."""

import json

import net

model = net.train()
with open("fit.json", "w") as file:
    json.dump({"mean_lifetime_": 2.2 * net.noisy_score(model), "rows": 96}, file)
