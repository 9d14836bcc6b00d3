"""Durations as texts in JSON."""

import json
import time

import net

t0 = time.time()
model = net.train()
dt = time.time() - t0
with open("report.json", "w") as f:
    json.dump(
        {
            "loss": net.score(model),
            "elapsed": f"0m {dt:04.1f}s",
            "train_time": f"{int(dt)} seconds {int(dt * 1e3) % 1000} ms",
            "eta": f"PT{dt:.2f}S",
        },
        f,
    )
