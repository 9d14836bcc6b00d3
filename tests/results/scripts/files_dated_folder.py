"""Each run has a folder with a date in its name."""

import json
import time
from pathlib import Path

import net

folder = Path("runs", time.strftime("%Y%m%d-%H%M%S"))
folder.mkdir(parents=True)
model = net.train()
(folder / "metrics.json").write_text(json.dumps({"loss": net.score(model)}))
