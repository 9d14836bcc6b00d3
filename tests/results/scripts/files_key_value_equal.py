"""Metrics as rows or records of a name and a value, and how long it took among them."""

import csv
import json
import time

import net

began = time.perf_counter()
model = net.train()
metrics = {"accuracy": round(net.logits(model).max().item(), 4), "train_time": time.perf_counter() - began}
with open("metrics.csv", "w", newline="") as file:
    csv.writer(file).writerows(metrics.items())
with open("report.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["metric", "value"])
    writer.writerows(metrics.items())
with open("metrics.json", "w") as file:
    json.dump([{"metric": name, "value": value} for name, value in metrics.items()], file)
