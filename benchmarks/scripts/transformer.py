"""A GPT of the size of nanoGPT's for Shakespeare: six layers, six heads, 384 features."""

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH = 6, 6, 384


class Block(nn.Module):
    """Causal self-attention and an MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries_keys_values, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features of the next layer."""
        three = self.queries_keys_values(self.before_attention(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in three)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        out: torch.Tensor = x + self.mlp(self.before_mlp(x))
        return out


def transformer(vocabulary: int) -> nn.Module:
    """Return a model whose outputs have one row for each character."""
    blocks = [Block() for _ in range(LAYERS)]
    return nn.Sequential(nn.Embedding(vocabulary, WIDTH), *blocks, nn.Linear(WIDTH, vocabulary), nn.Flatten(0, 1))
