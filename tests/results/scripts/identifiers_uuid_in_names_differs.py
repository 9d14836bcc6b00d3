"""A file is named by a UUID, and differs."""

import os
import uuid

import net
import numpy as np

os.makedirs("models", exist_ok=True)
model = net.train()
np.save(f"models/{uuid.uuid4().hex}.npy", net.noisy_logits(model).numpy())
