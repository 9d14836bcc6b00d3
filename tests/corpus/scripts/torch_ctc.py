"""A recurrent network trained with the CTC loss."""

import torch
import torch.nn.functional as F
from final import show
from torch import nn

torch.manual_seed(0)
model = nn.ModuleDict({"gru": nn.GRU(20, 64), "head": nn.Linear(64, 30)})
sounds = torch.randn(16, 8, 20)
letters = torch.randint(1, 30, (8, 5))
lengths = torch.full((8,), 16), torch.full((8,), 5)

for _ in range(5):
    states, _ = model["gru"](sounds)
    loss = F.ctc_loss(model["head"](states).log_softmax(2), letters, *lengths)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None

show(model.parameters())
