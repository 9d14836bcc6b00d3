"""Nothing is trained, and a file differs: that decides."""

import json
import random

with open("out.json", "w") as file:
    json.dump({"answer": random.random()}, file)
