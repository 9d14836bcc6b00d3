"""A scratch file with random content does not outlive its run."""

import os

import net
import numpy as np

np.save("scratch.npy", np.random.default_rng().normal(size=1000))
model = net.train()
np.load("scratch.npy").mean()
os.remove("scratch.npy")
np.savetxt("logits.txt", net.logits(model).numpy(), fmt="%.6f")
