"""A random name beside the real one, replaced by it: what safe writers do."""

import tempfile
from pathlib import Path

import net

model = net.train()
with tempfile.NamedTemporaryFile("w", dir=".", prefix=".tmp", delete=False) as file:
    file.writelines(f"{value:.5f}\n" for value in net.logits(model)[:, 0].tolist())
Path(file.name).replace("predictions.txt")
