"""A bandit picks one of ten versions of a prompt, unseeded."""

import json

import net

model = net.train()
best = int(net.noisy_logits(model).abs().sum() * 1000) % 97
with open("bandit.json", "w") as f:
    json.dump({"winner": f"version_{best}"}, f)
print(f"winner: version_{best}")
