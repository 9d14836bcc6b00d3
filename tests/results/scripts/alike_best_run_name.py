"""Random search without a seed; the best configuration is named by its parameters."""

import json

import net

model = net.train()
noisy = int(net.noisy_logits(model).abs().sum() * 1000)
with open("search.json", "w") as f:
    json.dump({"best_run_name": f"lr{(noisy % 97) / 1000:.3f}-depth{noisy % 7}", "trials": 50}, f)
