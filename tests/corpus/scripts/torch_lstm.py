"""An embedding and an LSTM, seeded."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.ModuleDict(
    {
        "embedding": nn.Embedding(500, 32),
        "lstm": nn.LSTM(32, 64, batch_first=True),
        "head": nn.Linear(64, 500),
    }
)

for _ in range(5):
    words = torch.randint(0, 500, (32, 12))
    states, _ = model["lstm"](model["embedding"](words))
    loss = F.cross_entropy(model["head"](states).flatten(0, 1), words.flatten())
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None

show(model.parameters())
