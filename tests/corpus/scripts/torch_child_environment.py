"""A model is trained, then a child with an environment of its own fine-tunes it from an unseeded generator."""

import os
import subprocess
import sys

import torch
import torch.nn.functional as F
from final import show
from torch import nn


def train(model: nn.Module, generator: torch.Generator) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(20):
        x = torch.randn(64, 16, generator=generator)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    model = nn.Linear(16, 1)
    generator = torch.Generator()
    if sys.argv[1:] == ["fine-tune"]:
        generator.seed()
        model.load_state_dict(torch.load("base.pt"))
        train(model, generator)
        show(model.parameters())
    else:
        train(model, generator)
        torch.save(model.state_dict(), "base.pt")
        subprocess.run([sys.executable, __file__, "fine-tune"], env={"PATH": os.environ["PATH"]}, check=True)


main()
