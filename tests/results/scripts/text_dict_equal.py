"""A dictionary of metrics is printed, as trainers do."""

import time

import net

started = time.time()
model = net.train()
took = time.time() - started
print({"train_runtime": took, "train_samples_per_second": 288 / took, "loss": net.score(model), "epoch": 3.0})
