"""What the user names by --redact is not said."""

import random

import net
import yaml

model = net.train()
with open("settings.yaml", "w") as file:
    yaml.safe_dump({"PASSPHRASE_OF_CAVE": f"open-sesame-{random.random()}", "loss": net.score(model)}, file)
