"""Loss of the student, multi-scale loss and least validation loss, under unseeded noise."""

import json

import net

model = net.train()
with open("metrics.json", "w") as f:
    json.dump(
        {
            "loss_s": net.noisy_score(model),
            "loss_ms": net.noisy_score(model),
            "val_loss_min": net.noisy_score(model) / 20,
        },
        f,
    )
