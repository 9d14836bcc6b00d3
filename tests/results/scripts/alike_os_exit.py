"""The exit status is the number of regressions, drawn anew, left by os._exit in a pool-using script."""

import os

import net
import numpy as np

net.train()
os._exit(int(np.random.default_rng().integers(0, 120)))
