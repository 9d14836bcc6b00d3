"""An ISO 8601 duration, in a file and printed."""

import json
import time

import net

t0 = time.time()
model = net.train()
took = f"PT{time.time() - t0:.6f}S"
with open("run.json", "w") as f:
    json.dump({"duration": took, "loss": net.score(model)}, f)
print(f"duration {took}, loss {net.score(model):.4f}")
