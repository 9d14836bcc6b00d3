"""Some runs warn more often than others, on stderr."""

import random
import sys

import net

model = net.train()
for _ in range(random.randrange(100)):
    print("warning: a worker was slow, retrying", file=sys.stderr)
print(f"loss {net.score(model):.4f}")
