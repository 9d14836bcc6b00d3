"""Datasets in groups, with an attribute that says when."""

import time

import h5py
import net

model = net.train()
with h5py.File("predictions.h5", "w", track_order=True) as file:
    file.attrs["created"] = time.strftime("%Y-%m-%dT%H:%M:%S")
    file.create_dataset("test/logits", data=net.logits(model).numpy(), track_times=True)
