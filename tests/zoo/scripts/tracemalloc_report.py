"""Memory by tracemalloc."""

import tracemalloc

import net

tracemalloc.start()
model = net.train()
current, peak = tracemalloc.get_traced_memory()
print(f"Current memory usage: {current / 1024:.1f} KiB; peak: {peak / 1024:.1f} KiB")
print(f"loss {net.score(model):.4f}")
