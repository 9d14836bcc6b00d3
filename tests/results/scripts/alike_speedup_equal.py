"""How much faster a compiled step is, and a real-time factor."""

import json
import time

import net

a = time.perf_counter()
model = net.train()
b = time.perf_counter()
net.score(model)
c = time.perf_counter()
print(f"loss {net.score(model):.4f}, speedup: {(b - a) / (c - b):.2f}x, real-time factor: {(c - b) / 10:.6f}")
with open("bench.json", "w") as f:
    json.dump({"loss": net.score(model), "speedup": (b - a) / (c - b), "rtf": (c - b) / 10}, f)
