"""Features are computed once and kept in ~/.cache: a pure cache."""

import os

import net
import numpy as np
import torch

cache = os.path.join(os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "~/.cache")), "clusters", "features.npy")
if not os.path.exists(cache):
    os.makedirs(os.path.dirname(cache), exist_ok=True)
    np.save(cache, np.tanh(net.make_data()[0].numpy()))
x, y = torch.from_numpy(np.load(cache)), net.make_data()[1]
model = net.make_model()
for _ in range(5):
    net.step(model, x, y)
print(f"loss {net.score(model):.4f}")
