"""A table with tabs in bzip2."""

import bz2

import net

model = net.train()
with bz2.open("scores.tsv.bz2", "wt") as file:
    file.write("row\tscore\n")
    file.writelines(f"{row}\t{value}\n" for row, value in enumerate(net.noisy_logits(model)[:, 1].tolist()))
