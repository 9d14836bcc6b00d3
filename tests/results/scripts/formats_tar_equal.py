"""A model as an archive with times and owners."""

import tarfile

import net
import torch

model = net.train()
torch.save(model.state_dict(), "model.pt")
with tarfile.open("model.tar.xz", "w:xz") as archive:
    archive.add("model.pt")
