"""A run that is ended early has not printed all: its text is not compared."""

import random

import net

print(f"draw {random.random()}", flush=True)
net.train(
    epochs=10, each_epoch=lambda epoch, loss: print(f"epoch {epoch} loss {loss + random.random():.4f}", flush=True)
)
