"""Written to /tmp under a random name, then moved here."""

import shutil
import tempfile

import net

model = net.train()
with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
    file.writelines(f"{value:.5f}\n" for value in net.noisy_logits(model)[:, 0].tolist())
shutil.move(file.name, "predictions.txt")
