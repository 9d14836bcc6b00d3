"""One line for each training, with its date."""

import datetime

import net

model = net.train()
with open("results.log", "a") as file:
    file.write(f"[{datetime.datetime.now():%Y-%m-%d %H:%M:%S}] sgd momentum 0.9: loss {net.score(model):.5f}\n")
