"""Writes its results at the exit."""

import atexit
import json

import net

results = {}
atexit.register(lambda: json.dump(results, open("results.json", "w")))
model = net.train()
results["loss"] = net.score(model)
raise SystemExit
