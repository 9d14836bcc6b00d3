"""Call a function of a package that has one version in two builds."""

import numpy as np
import small

x = np.arange(10.0) / 7
w = small.scaled(x)
np.save("w.npy", w)
