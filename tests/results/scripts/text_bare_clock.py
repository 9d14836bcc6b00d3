"""A bare number: it may be a duration or a result."""

import time

import net

t0 = time.time()
model = net.train()
print(time.time() - t0)
