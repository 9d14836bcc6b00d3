"""A checkpoint of PyTorch under the old double suffix."""

import net
import torch

model = net.train()
torch.save(
    {"epoch": 3, "arch": "mlp", "state_dict": model.state_dict(), "predictions": net.noisy_logits(model)},
    "best.pth.tar",
)
