"""Each run has a folder with a date in its name, and another loss in it."""

import json
import time
from pathlib import Path

import net

folder = Path("runs", time.strftime("%b%d_%H-%M-%S"))
folder.mkdir(parents=True)
model = net.train()
(folder / "metrics.json").write_text(json.dumps({"loss": net.noisy_score(model)}))
