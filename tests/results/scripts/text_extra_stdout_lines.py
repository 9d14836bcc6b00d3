"""Some runs print more lines than others."""

import random

import net

model = net.train()
for _ in range(random.randrange(100)):
    print("skipped a bad row")
print(f"loss {net.score(model):.4f}")
