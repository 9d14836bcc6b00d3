"""A model with its date: named by --artifact, its bytes count."""

import json
import time

import net

model = net.train()
weights = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
with open("model.json", "w") as file:
    json.dump({"created_at": time.time(), "weights": weights}, file)
