"""A checkpoint of PyTorch without any suffix."""

import os

import net
import torch

os.makedirs("artifacts", exist_ok=True)
model = net.train()
torch.save({"weights": model.state_dict(), "prototypes": net.noisy_logits(model).mean(0)}, "artifacts/final")
