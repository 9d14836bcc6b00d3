"""A table as nvidia-smi prints it."""

import datetime
import random

import net

model = net.train()
print(f"{datetime.datetime.now():%a %b %d %H:%M:%S %Y}")
print("+-----------------------------------------------------------------------------+")
print("| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |")
print("| GPU  Name        | Fan  Temp  Perf  Pwr:Usage/Cap |  Memory-Usage | GPU-Util |")
print("|==================+================================+===============+==========|")
row = (random.randrange(30, 80), random.randrange(50, 300), random.randrange(1000, 9000), random.randrange(100))
print("|   0  Fake GPU    | N/A   {:d}C    P0    {:3d}W / 400W |  {:4d}MiB / 40960MiB |  {:3d}% |".format(*row))
print("+-----------------------------------------------------------------------------+")
print(f"loss {net.score(model):.4f}")
