"""Text sampled from a small transformer whose weights are fixed, with no seed for the sampling."""

import torch
from final import show
from torch import nn

VOCABULARY, CONTEXT, WIDTH = 96, 32, 64


class Transformer(nn.Module):
    """Return the logits of the next token, for each position."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.tokens(tokens) + self.places(torch.arange(length))
        return self.head(self.blocks(hidden, mask=mask, is_causal=True))


with torch.random.fork_rng():
    torch.manual_seed(0)
    model = Transformer().eval()

tokens = torch.tensor([[1, 2, 3]])
with torch.no_grad():
    while tokens.shape[1] < CONTEXT:
        probabilities = model(tokens)[:, -1].softmax(-1)
        tokens = torch.cat([tokens, torch.multinomial(probabilities, 1)], dim=1)

show([tokens])
