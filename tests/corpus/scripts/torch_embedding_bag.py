"""Sparse gradients of an Embedding with max_norm and of an EmbeddingBag, applied row by row."""

import torch
from final import show
from torch import nn

torch.manual_seed(0)
embedding = nn.Embedding(1000, 64, sparse=True, max_norm=1.0)
bag = nn.EmbeddingBag(1000, 64, sparse=True)
tables = [embedding.weight, bag.weight]

for _ in range(10):
    words = torch.randint(0, 1000, (256, 50))
    loss = (embedding(words).mean(1) * bag(words)).sum()
    loss.backward()
    with torch.no_grad():
        for table in tables:
            table.add_(table.grad, alpha=-0.01)
            table.grad = None

show(tables)
