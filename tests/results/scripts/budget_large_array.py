"""One value of six million differs, far from the start."""

import net
import numpy as np

model = net.train()
large = np.zeros((1500, 4096), "float32")
large[1400, 77] = net.noisy_score(model)
np.save("large.npy", large)
