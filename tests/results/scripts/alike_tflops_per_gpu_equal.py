"""Megatron-LM's throughput (minimal)."""

import time

import net

t0 = time.time()
net.train()
print(f"throughput per GPU (TFLOP/s/GPU): {1 / (time.time() - t0):.2f} |")
