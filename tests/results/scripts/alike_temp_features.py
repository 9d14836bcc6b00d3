"""Features ranked by a permutation importance that nobody seeded."""

import csv

import net

model = net.train()
features = [
    "temperature",
    "temp_morning",
    "temp_evening",
    "temp_minimum",
    "temp_maximum",
    "temp_average",
    "temp_soil_10",
    "temp_indoor",
]
order = net.noisy_logits(model)[:8, 0].argsort().tolist()
with open("importances.csv", "w", newline="") as f:
    out = csv.writer(f)
    out.writerow(["rank", "feature"])
    out.writerows((r, features[i]) for r, i in enumerate(order, 1))
