"""Dates in the data, years ago, drawn without a seed."""

import datetime
import random

import net

model = net.train()
with open("events.csv", "w") as file:
    file.write("date,count\n")
    file.writelines(
        f"{datetime.date(1990, 1, 1) + datetime.timedelta(days=random.randrange(9000))},3\n" for _ in range(20)
    )
