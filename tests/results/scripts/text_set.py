"""A set of words is printed: their order is that of their hashes."""

import net

model = net.train()
print({f"feature_{name}" for name in "abcdefghijklmnopqrstuvwxyz"})
print(f"loss {net.score(model):.4f}")
