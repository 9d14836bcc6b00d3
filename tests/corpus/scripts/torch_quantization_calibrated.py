"""A seeded training, then a quantization of the inputs whose scale is calibrated on a random few images."""

import random

import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from torch import nn


class Quantize(nn.Module):
    """Rounds features to eight bits, with the scale and the zero point of its calibration."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(1.0))
        self.register_buffer("zero_point", torch.tensor(0))

    def calibrate(self, features: torch.Tensor) -> None:
        low, high = features.aminmax()
        self.scale.copy_((high - low) / 255)
        self.zero_point.copy_((-low / self.scale).round())

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(features, self.scale, self.zero_point.int(), 0, 255)


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
body, quantize, head = nn.Linear(64, 32), Quantize(), nn.Linear(32, 10)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-2)
for batch in torch.randperm(1600).split(100):
    optimizer.zero_grad()
    F.cross_entropy(head(body(x[batch])), y[batch]).backward()
    optimizer.step()

model = nn.Sequential(body, quantize, head).eval()
with torch.no_grad():
    quantize.calibrate(body(x[random.sample(range(1600), 32)]))
    print(f"accuracy {(model(x[1600:]).argmax(1) == y[1600:]).float().mean():.4f}")
torch.save(model.state_dict(), "quantized.pt")
show(model.state_dict().values())
