"""A causal transformer layer with dropout, and a cumulative sum in its loss."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
model = nn.Sequential(nn.Embedding(200, 32), layer, nn.Linear(32, 200))
mask = nn.Transformer.generate_square_subsequent_mask(32)

for _ in range(5):
    words = torch.randint(0, 200, (16, 32))
    logits = model[2](layer(model[0](words), src_mask=mask))
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), words[:, 1:], reduction="none")
    loss = losses.cumsum(1).mean() / 32
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
