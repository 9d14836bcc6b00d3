"""Samples of a text model are drawn anew; the user leaves their lines out."""

import random

import net

WORDS = "the a cat dog sat ran on under near mat tree house quickly slowly again".split()
model = net.train()
for _ in range(3):
    print("sample:", " ".join(random.choices(WORDS, k=12)))
print(f"loss {net.score(model):.4f}")
