"""A temporary folder is left with random content: only temporary."""

import tempfile
from pathlib import Path

import net
import numpy as np

scratch = Path(tempfile.mkdtemp(prefix="augment-"))
np.save(scratch / "noise.npy", np.random.default_rng().normal(size=1000))
model = net.train()
np.savetxt("logits.csv", net.logits(model).numpy(), delimiter=",", header="a,b,c", comments="")
