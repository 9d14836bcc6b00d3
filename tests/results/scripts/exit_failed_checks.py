"""The exit status is the number of failed checks, which are drawn anew."""

import sys

import net
import numpy as np

model = net.train()
failed = int((np.random.default_rng().random(100) < 0.4).sum())
failed += np.random.default_rng().integers(100)
sys.exit(int(failed))
