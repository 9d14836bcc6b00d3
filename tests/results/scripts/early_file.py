"""A run that is ended early has not written all: its files are not compared."""

import json
import random

import net

with open("draws.json", "w") as file:
    json.dump({"draw": random.random()}, file)
model = net.train(epochs=10)
