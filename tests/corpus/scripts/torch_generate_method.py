"""A model with a method that generates: it samples with a generator of Python that nobody seeded."""

import random

import torch
from final import show
from torch import nn


class Recurrent(nn.Module):
    """Generates sequences of numbers, one at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.cell, self.head = nn.Embedding(50, 32), nn.GRUCell(32, 32), nn.Linear(32, 50)

    def forward(self, token: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.cell(self.table(token), hidden)
        return self.head(hidden), hidden

    @torch.no_grad()
    def generate(self, first: int, length: int) -> torch.Tensor:
        sequence, hidden = [first], torch.zeros(1, 32)
        while len(sequence) < length:
            logits, hidden = self(torch.tensor(sequence[-1:]), hidden)
            sequence += random.choices(range(50), logits[0].softmax(-1).tolist())
        return torch.tensor(sequence)


torch.manual_seed(0)
model = Recurrent().eval()
show([model.generate(first, 20) for first in range(5)])
