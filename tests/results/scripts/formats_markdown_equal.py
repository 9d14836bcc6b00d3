"""A table in a report for people, with its date and the time that the training took."""

import datetime
import time

import net

started = time.time()
model = net.train()
with open("REPORT.md", "w") as file:
    file.write(f"# Results of {datetime.datetime.now():%d %B %Y, %H:%M:%S}\n\n| split | loss |\n|---|---|\n")
    file.write(f"| test | {net.score(model):.4f} |\n\nTraining time: {time.time() - started:.2f} s\n")
