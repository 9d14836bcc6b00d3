"""One number for the whole training in a table without a header, from dropout at test time."""

import csv

import net

model = net.train()
with open("metrics.csv", "w", newline="") as file:
    csv.writer(file).writerow(["accuracy", round(net.noisy_logits(model).max().item(), 4)])
