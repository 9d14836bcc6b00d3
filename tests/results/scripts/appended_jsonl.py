"""Records of one JSON object a line, with the time of each."""

import json
import time

import net

model = net.train()
with open("log.jsonl", "a") as file:
    file.write(json.dumps({"ts": time.time(), "event": "eval", "eval_loss": net.noisy_score(model)}) + "\n")
