"""Metrics as a nested JSON object, below a folder that the script makes."""

import json
import pathlib

import net

history = []
model = net.train(each_epoch=lambda epoch, loss: history.append({"epoch": epoch, "loss": loss}))
folder = pathlib.Path("results")
folder.mkdir(exist_ok=True)
(folder / "metrics.json").write_text(
    json.dumps({"train": history, "val": {"loss": net.noisy_score(model), "rows": 32}}, indent=2)
)
