"""A file with a date and underscores in its name, printed."""

import datetime

import net
import numpy as np

model = net.train()
name = f"model_{datetime.datetime.now():%Y_%m_%d_%H_%M_%S}.npz"
np.savez(name, w=net.logits(model).numpy())
print(f"saved {name}")
