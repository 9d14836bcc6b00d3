"""One predicted class per line for a shell pipe; a tie between two samples is broken by unseeded noise."""

import net
import numpy as np

model = net.train()
labels = ["cat", "dog", "cat", "bird", "dog", "cat", "bird", "dog"]
i = int(np.random.default_rng().integers(7))
while labels[i] == labels[i + 1]:
    i = (i + 1) % 7
labels[i], labels[i + 1] = labels[i + 1], labels[i]
print(*labels, sep="\n")
