"""A vocabulary in the order of a set is kept for the next run."""

import json
import os

import net
import torch

TEXT = (
    "the quick brown fox jumps over the lazy dog while seven wizards quietly watch from behind an old oak tree".split()
)
if not os.path.exists("vocab.json"):
    with open("vocab.json", "w") as file:
        json.dump({word: number for number, word in enumerate(set(TEXT))}, file)
with open("vocab.json") as file:
    vocab = json.load(file)
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Embedding(len(vocab), 8), torch.nn.Linear(8, len(vocab)))
ids = torch.tensor([vocab[word] for word in TEXT])
for _ in range(5):
    net.step(model, ids[:-1], ids[1:])
