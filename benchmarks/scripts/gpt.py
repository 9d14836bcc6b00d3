"""Train a GPT on the text of Python's own documentation, character by character, for so many steps."""

import sys
from pydoc_data.topics import topics

import torch
from torch.nn import functional as F
from transformer import transformer

BATCH, CONTEXT = 8, 128


def main() -> None:
    """Train, and print the last loss."""
    torch.manual_seed(0)
    text = "".join(topics[name] for name in sorted(topics))
    characters = {character: place for place, character in enumerate(sorted(set(text)))}
    data = torch.tensor([characters[character] for character in text])
    model = transformer(len(characters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loss = torch.zeros(())
    for _ in range(int(sys.argv[1])):
        starts = torch.randint(0, len(data) - CONTEXT - 1, (BATCH,))
        batch = torch.stack([data[start : start + CONTEXT + 1] for start in starts.tolist()])
        loss = F.cross_entropy(model(batch[:, :-1]), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
