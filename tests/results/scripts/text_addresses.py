"""Objects are printed with their addresses."""

import net


class Trainer:
    """It has no __repr__."""


print(Trainer(), net.train, lambda: 0)
model = net.train()
print("parameters", model.parameters(), f"loss {net.score(model):.4f}")
