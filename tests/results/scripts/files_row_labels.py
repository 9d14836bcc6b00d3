"""A table of statistics as pandas writes it, in which a time is equal by nature and a score is not."""

import csv

import net

model = net.train()
scores = net.noisy_logits(model).flatten()
with open("summary.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["", "mean", "std"])
    writer.writerow(["train_time", 0.25, 0.0])
    writer.writerow(["logit", round(scores.mean().item(), 5), round(scores.std().item(), 5)])
