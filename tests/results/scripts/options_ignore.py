"""Samples for debugging are drawn anew; the user leaves them out."""

import os

import net
import numpy as np

os.makedirs("debug", exist_ok=True)
model = net.train()
np.save("debug/augmented.npy", net.noisy_logits(model).numpy())
np.save("logits.npy", net.logits(model).numpy())
