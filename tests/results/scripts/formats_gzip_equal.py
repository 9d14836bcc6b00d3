"""A table in gzip, whose header has the time."""

import gzip

import net

model = net.train()
with gzip.open("predictions.csv.gz", "wt") as file:
    file.write("a,b,c\n")
    file.writelines(",".join(f"{value:.4f}" for value in row) + "\n" for row in net.logits(model).tolist())
