"""Metrics of torchmetrics, with the time of each update."""

import time

import net
import torchmetrics

model = net.train()
accuracy = torchmetrics.classification.MulticlassAccuracy(3)
started = time.perf_counter()
accuracy.update(net.logits(model), net.make_data()[1][96:])
print(
    f"acc {accuracy.compute():.4f} in {time.perf_counter() - started:.6f} sec ({(time.perf_counter() - started) * 1e3:.3f} ms)"
)
