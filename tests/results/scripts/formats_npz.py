"""Arrays with names."""

import net
import numpy as np

model = net.train()
np.savez("embeddings.npz", clean=net.logits(model).numpy(), augmented=net.noisy_logits(model).numpy())
