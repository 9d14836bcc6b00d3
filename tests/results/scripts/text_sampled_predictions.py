"""Classes are sampled from the softmax, without a seed."""

import net
import numpy as np

model = net.train()
chances = net.logits(model).softmax(1).double().numpy()
chances = 0.4 * chances / chances.sum(1, keepdims=True) + 0.2
print("predictions:", [int(np.random.default_rng().choice(3, p=row / row.sum())) for row in chances])
