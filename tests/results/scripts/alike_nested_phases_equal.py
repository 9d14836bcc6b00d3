"""Timings two levels deep, one of them of loading."""

import json
import time

import net

t0 = time.time()
model = net.train()
with open("report.json", "w") as f:
    json.dump({"loss": net.score(model), "timings": {"phases": {"load": time.time() - t0, "fit": time.time() - t0}}}, f)
