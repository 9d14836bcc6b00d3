"""An embedding and an LSTM with Adam, seeded."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
embedding = nn.Embedding(1000, 64)
lstm = nn.LSTM(64, 128, batch_first=True)
head = nn.Linear(128, 1000)
optimizer = torch.optim.Adam([*embedding.parameters(), *lstm.parameters(), *head.parameters()], lr=1e-3)

for _ in range(10):
    words = torch.randint(0, 1000, (32, 50))
    states, _ = lstm(embedding(words))
    loss = F.cross_entropy(head(states).flatten(0, 1), words.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
