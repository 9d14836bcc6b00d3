"""Predicted authors of texts."""

import csv

import net

model = net.train()
with open("authors.csv", "w", newline="") as f:
    out = csv.writer(f)
    out.writerow(["text", "username"])
    out.writerows((i, ["alice", "bob", "carol"][c]) for i, c in enumerate(net.noisy_logits(model).argmax(1).tolist()))
