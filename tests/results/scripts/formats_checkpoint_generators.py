"""A checkpoint with the states of generators, one of which nobody seeded, and with its time."""

import random
import time

import net
import numpy as np
import torch

model = net.train()
state = {
    "model": model.state_dict(),
    "rng": {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()},
    "time": time.time(),
}
torch.save(state, "checkpoint.pt")
