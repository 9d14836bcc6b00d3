"""A row in a history that others keep too, with its time."""

import csv
import datetime
import time

import net

started, clock = datetime.datetime.now(), time.perf_counter()
model = net.train()
with open("history.csv", "a", newline="") as file:
    row = [f"{started:%Y-%m-%d %H:%M:%S}", f"{time.perf_counter() - clock:.2f}", "mlp", round(net.score(model), 6)]
    csv.writer(file).writerow(row)
