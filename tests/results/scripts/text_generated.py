"""Words are sampled from the model, without a seed."""

import random

import net

WORDS = "the a cat dog sat ran on under near mat tree house quickly slowly again and".split()
model = net.train()
weights = [abs(value) for value in net.logits(model)[:16, 0].tolist()]
print("generated:", " ".join(random.choices(WORDS, weights, k=20)))
