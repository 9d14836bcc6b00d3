"""A password in a file: that it differs is said, not what it is."""

import json
import random

import net

model = net.train()
with open("config.json", "w") as file:
    json.dump({"database": {"user": "app", "password": f"swordfish-{random.random()}"}, "loss": net.score(model)}, file)
