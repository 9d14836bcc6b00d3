"""Datasets in groups."""

import h5py
import net

model = net.train()
with h5py.File("predictions.h5", "w") as file:
    file["train/epochs"] = 3
    file.create_dataset("test/logits", data=net.noisy_logits(model).numpy(), compression="gzip")
