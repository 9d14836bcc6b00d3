"""Which backbone is best depends on noise."""

import json

import net

model = net.train()
names = [f"timm/resnet{number:02}" for number in range(100)]
best = names[int(net.noisy_logits(model).abs().sum() * 1000) % 100]
with open("selected.json", "w") as f:
    json.dump({"backbone": best, "candidates": len(names)}, f)
