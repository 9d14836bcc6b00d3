"""An intrusion detector counts flagged processes and ports, by a noisy score."""

import json

import net
import numpy as np

model = net.train()
noise = np.random.default_rng().random(5000)
with open("alerts.json", "w") as f:
    json.dump({"anomalous_processes": int((noise > 0.9).sum()), "suspicious_ports": int((noise > 0.97).sum())}, f)
